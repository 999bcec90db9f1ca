"""What people see: tables in a terminal (`terminal.py`), documents, progress, pages."""
