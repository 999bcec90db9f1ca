"""Evaluate models on labelled data, with confidence intervals, and compare them. Used by `cli/` and the view probe."""
