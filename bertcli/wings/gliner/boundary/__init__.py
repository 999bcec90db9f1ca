"""A model of GLiNER2.5: finds entities of types that a request names, of any length, and scores candidates.

kind         `Boundary`: what it is for
folder_type  config.json says that the architecture is "boundary"
settings     the settings in config.json, and which are refused
family       the family: one of models/ with those heads; **how wide their layers are**
network      the heads: states between words, a pool of spans, their scores for each type
ops          their ops; formulas.py and worked.js are what pages of `trace` show of them
pool         which spans are scored
finder       the entities of texts, and the scores of candidates: what tag --labels and classify --candidates ask

Words, prompt and windows are those of GLiNER2, which this one imports.
"""
