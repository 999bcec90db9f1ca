"""Figures with their intervals, as functions of arrays: what `evaluate` and `probe` both use.

metrics        figures by hand: means, correlations, figures of labels, calibration, ranking
label_figures  all figures of predicted beside true labels
intervals      95 % intervals: Wilson's, and the bootstrap
"""
