"""The computation of each task; its spec is the file of the same name in the folder above. run.py drives them."""
