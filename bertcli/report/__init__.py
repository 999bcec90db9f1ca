"""How results are shown: tables and marked texts on a terminal, documents, progress, web pages."""
