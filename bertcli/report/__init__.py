"""Show results to people: tables in a terminal (`terminal.py`), documents, progress bars, web pages (`page.py`).

terminal            print tables, fold them to a width, escape control characters
tables              Table: the rows of a task's records; marked: its texts with marks
documents           Document: one result as a table, JSON, CSV or Markdown
page                web pages with one frame
intervals           how a figure is written beside its interval
charts              charts that pages show inline; figures: those for papers, by matplotlib
shades              cells and words on a ground of color
encodable           characters that the terminal's encoding lacks, respelled
markdown, progress  the guide in a terminal; the bar on standard error
written             `Wrote FILE (12 kB).`, and the command line that pages show
model_names         names of models as tables show them: as much of each path as distinguishes it from the others
"""
