"""What a model is asked to do: a page for each task, and in compute/ the work that it takes."""
