"""A multi-vector encoder (ColBERT): a vector for every token of a query and of a document, for late interaction.

kind         `MultiVectorEncoder`: what it is for; **which tensor projects where there are no modules**
folder_type  Stanford's folders have a file of settings
settings     read the settings of queries and documents in the three layouts that such folders have; **how many tokens a
             query and a document have**
markers      the markers that begin prompts, which the tokenizer must not split
"""
