"""What a model is asked to do: a spec for each task, and in compute/ the work that it takes."""
