"""The computation of each task; its spec is the file of the same name in the folder above. run.py drives them.

answer         the ranges of a context that answer a question; **where a context is cut into windows, and when there is
               no answer**
classify       the probabilities of labels, of one text following another, or of alternatives given with the call;
               **which head classifies, and with which activation**
encode         texts to vectors; **which layers and pooling, and what is refused for vectors**
fill_mask      the words a model predicts for a mask, one mask at a time or all masks of a text together
neighbors      the word pieces nearest to a word in the embedding space
rank           documents in the order in which a model finds them relevant to a query; **what scores a pair; when a
               query's documents are complete**
score          how probable a model finds each token of a text, given all the others
similarity     the cosines of all pairs of texts
tag            the entities of texts of any length, or the label of every piece; **how pieces become entities, and which
               of two that overlap stays**
tokenize       the tokens, ids, segments and offsets of a text, as the network gets them
"""
