"""Output of results: to standard output, or to a file that is written next to its place and renamed when complete."""
