"""Products by OpenBLAS: exact whatever is computed together, and fast for weights that are used often."""
