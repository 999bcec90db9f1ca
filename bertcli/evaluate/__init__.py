"""Evaluate models on labelled data, with confidence intervals, and compare them. Only `cli/` imports this."""
