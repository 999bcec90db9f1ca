"""A span model (GLiNER): entities of the types that a request names, in any words, as spans of whole words.

kind.py          `Spans`: what it is for
folder_type.py   gliner_config.json marks such a folder; what it lacks is its backbone's
settings.py      the settings in gliner_config.json, and which are refused
weights.py       open the weights: those of a backbone and of the head that scores spans
family.py        the family: one of models/ with that head
network.py       the head
ops.py           its ops; formulas.py and worked.js are what pages of `trace` show of them
words.py         the words that it reads
rows.py          the rows of words and labels that it reads
finder.py        the words, windows and entities of texts: what tag --labels asks
"""
