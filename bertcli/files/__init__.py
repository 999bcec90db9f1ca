"""Read texts, write results, search in stored vectors. formats.py lists the formats and what each holds."""
