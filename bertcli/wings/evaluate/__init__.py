"""Evaluate models on labelled data, with confidence intervals, and compare them. Used by `cli/` and the view probe.

evaluation              the whole: models, data, figures, differences, the record; report/ shows it
options                 the options of `bertcli evaluate`
load/                   data files and folders, as rows with labels
evaluators/             a model run on labelled rows: an Outcome for each task
outcome                 Outcome: arrays of results, and how figures are made of them
figures, metrics        the table of all figures, and the functions that compute them
bootstrap, comparison   intervals; differences of two models, and their p-values
minimal_pairs           which of two similar texts is likelier
logistic                logistic regression, for probe alone
provenance              versions, digests and options of a run
word_places             the word that a piece belongs to, where the data give the words
"""
