"""Products by OpenBLAS's AVX2 kernel: exact whatever is computed together, and fast for weights that are used often."""
