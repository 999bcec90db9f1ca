"""Read texts, rows, passages and vectors from files; `formats.py` in the folder above names the readers."""
