"""The work of the views: a file for each, with `measure` (passes to a result) and `draw` (the result to a page)."""
