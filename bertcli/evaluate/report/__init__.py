"""An evaluation shown: tables on the terminal, Markdown, CSV, and a web page."""
