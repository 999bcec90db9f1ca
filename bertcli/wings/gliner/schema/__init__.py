"""A model of GLiNER2: finds entities of types that a request names, and scores candidates that it names.

kind         `Schema`: what it is for
folder_type  such a folder has the backbone's configuration in a folder of its own; **what marks one, how it is opened**
settings     the settings in config.json, and which are refused
family       the family: one of models/ with those heads; **how wide their layers are**
network      the heads
ops          their ops; formulas.py and worked.js are what pages of `trace` show of them
rows         the rows of words and marks that they read
words        the words that they read; **what a word is**
finder       the words before a text, its windows and its entities: what tag --labels asks; **where a window ends**
candidates   the scores of candidates: what classify --candidates asks

Spans are scored as in spans/, a kind that this one imports.
"""
