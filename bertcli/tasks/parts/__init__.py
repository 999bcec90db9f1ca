"""What several tasks share: chunks, targets, candidates, scores.

chunks            cut long texts into chunks, which are encoded like texts; cuts are between words
entities          tag --labels: entities of types that a request names, as the model's kind finds them; **how long a
                  window is**
guesses           mask each token of a text in turn, and compute its log-probability, for `score`; **whether a word's
                  other pieces are masked, too**
joint             fill all masks of a text together, by beam search (fill-mask --joint)
label_schemes     schemes of labels, such as BIO: which labels have a prefix, and which entities they make
legal_path        tag --decode legal: of all sequences of labels that the scheme allows, the likeliest; **which label
                  may follow which**
label_logits      compute the logits of labels; **whether a head or the kind scores them**
made_alike        were stored vectors made by this model; **which settings must agree**
masked            compute a masked language model's predictions at some tokens of sentences, over its vocabulary
pair_logits       compute the logits of pairs for cross-encoders that score with sentence-transformers modules
prepared          prepare texts for the tokenizer: put a prompt before them, and cut long ones into chunks (chunks.py);
                  **which prompt a text gets that the user asks for**
prepared_task     base of tasks that give vectors: of texts with a prompt before them, or of chunks
redact            redact a text: replace each entity by its label in brackets, or by a given word (tag --redact); **what
                  is hidden, and what the record leaves out**
sample_sentences  built-in sentences that have little to do with each other
scores            turn logits into scores, by the name of an activation; **which activations there are**
sparse_queries    encode --sparse of queries with a Router's table of weights (inference-free SPLADE)
sparse_vectors    the base class of tasks that give sparse vectors: the vocabulary entries whose weight is not 0
sparse_weights    encode --sparse: a weight for every entry of the vocabulary, as the model's kind computes them
tagged_words      tag on texts that are given as their words: a tag for each word; **whether a record has tags**
targets           find the ids of the words that `fill-mask --targets` scores
token_vectors     the vectors of tokens in late interaction (ColBERT)
words_at_mask     compute the probabilities of words at a mask, of one piece or of several
"""
