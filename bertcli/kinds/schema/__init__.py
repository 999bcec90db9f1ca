"""A model of GLiNER2: entities and labels of texts, of the types and the candidates that a request names.

kind.py          `Schema`: what it is for
folder_type.py   such a folder has the backbone's configuration in a folder of its own
settings.py      the settings in config.json, and which are refused
weights.py       open the weights: those of a backbone and of the heads
family.py        the family: one of models/ with those heads
network.py       the heads
ops.py           their ops; formulas.py and worked.js are what pages of `trace` show of them
rows.py          the rows of words and marks that they read
words.py         the words that they read
finder.py        the words before a text, its windows and its entities: what tag --labels asks
candidates.py    the scores of candidates: what classify --candidates asks

A span has its scores as in spans/, a kind that this one stands on.
"""
