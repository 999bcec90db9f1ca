"""Show results to people: tables in a terminal (`terminal.py`), documents, progress bars, web pages (`page.py`).

terminal            print tables, fold them to a width, escape control characters; **how wide a column is, and where it
                    folds**
tables              Table: the rows of a task's records; marked: its texts with marks; **how a value is written in a
                    cell**
documents           Document: one result as a table, JSON, CSV or Markdown
page                web pages with one frame; **how wide a heat map is on a phone**
digits              how a float32 is written in records
intervals           how a figure is written beside its interval; **how many digits a figure has**
charts              charts that pages show inline, as SVG
figures             figures for papers, by matplotlib; **how wide one is, its letters and its colors**
shades              cells and words on a ground of color
markdown            the guide in a terminal
progress            the bar on standard error; **when there is one**
written             `Wrote FILE (12 kB).`, and the command line that pages show
model_names         names of models as tables show them: as much of each path as distinguishes it from the others;
                    **which part of a path**
"""
