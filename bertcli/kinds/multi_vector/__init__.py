"""A multi-vector encoder (ColBERT): a vector for every token of a query and of a document, for late interaction.

kind.py          `MultiVectorEncoder`: what it is for
folder_type.py   Stanford's folders have a file of settings
settings.py      read the settings of queries and documents in the three layouts that such folders have
markers.py       the markers that begin prompts, which the tokenizer must not split
"""
