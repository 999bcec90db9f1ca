"""Measure models on labelled data, with intervals, and compare them. Nothing outside of `cli/` imports this."""
