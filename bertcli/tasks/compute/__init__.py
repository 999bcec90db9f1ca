"""The work of each task, which its page in the folder above describes."""
