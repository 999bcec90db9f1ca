"""Show an evaluation: in a terminal, Markdown and CSV (tables.py), as a web page (page.py), as a figure (figure.py).

of_models  what these take from the record: the figures of a model, and short names
"""
