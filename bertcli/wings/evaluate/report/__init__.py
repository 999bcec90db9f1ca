"""Show an evaluation: in a terminal, Markdown and CSV (tables.py), as a web page (page.py), as a figure (figure.py).

drawing  the parts of figures (.svg), from which interpret makes its own, too
"""
