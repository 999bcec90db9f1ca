"""A span model (GLiNER): entities of the types that a request names, in any words, as spans of whole words.

kind         `Spans`: what it is for
folder_type  gliner_config.json marks such a folder; what it lacks is its backbone's
settings     the settings in gliner_config.json, and which are refused; **how large they may be**
weights      open the weights: those of a backbone and of the head that scores spans
family       the family: one of models/ with that head; **how wide its layers are**
network      the head
ops          its ops; formulas.py and worked.js are what pages of `trace` show of them
words        the words that it reads; **what a word is**
rows         the rows of words and labels that it reads
finder       the words, windows and entities of texts: what tag --labels asks; **where a window ends; which of two
             spans that overlap stays**
"""
