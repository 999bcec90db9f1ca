"""The work of each task, which its spec in the folder above describes."""
