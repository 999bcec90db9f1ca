"""Figures with their intervals, as functions of arrays: what `evaluate` and `probe` both use.

metrics        figures by hand: means, correlations, figures of labels, calibration, ranking; **each one's formula**
label_figures  all figures of predicted beside true labels; **from how many texts a label counts**
intervals      95 % intervals: Wilson's, and the bootstrap; **which figures have an interval, and of which kind**
"""
