"""Show results to people: tables in a terminal (`terminal.py`), documents, progress bars, web pages (`page.py`)."""
