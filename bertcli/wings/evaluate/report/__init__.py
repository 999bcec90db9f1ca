"""Show an evaluation: tables on the terminal, Markdown and CSV (tables.py), and a web page (page.py)."""
