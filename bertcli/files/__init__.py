"""Reading texts, writing results, search in stored vectors; `formats.py` says what each kind of file holds."""
