"""Views of a model at work, by forward passes alone: explain, lens, heads, patch, probe, diff."""
