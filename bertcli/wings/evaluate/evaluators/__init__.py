"""An evaluator for each task: it runs a model on labelled rows and returns an Outcome, from which figures are made.

A new one is a file here and its line in TASKS of options.py.

evaluator       `Evaluator`: what a task says of itself; **in which direction a figure is better**
answers         evaluator of `answer`
bertscore       evaluator of `bertscore`: candidates against references, by the similarity of their tokens; **which
                layer**
classification  evaluator of `classification`: predicted against true labels, and the calibration of the probabilities;
                **which label stands for which of the model's**
masked          evaluators of `fill-mask` and `score`
minimal_pairs   evaluator of `minimal-pairs` (BLiMP, CrowS-Pairs, yours)
ranking         evaluators of `retrieval` (search a corpus) and `rank` (rerank candidates)
similarity      evaluators of `sts`, `pairs` and `triplets`; **how vectors are stored and compared**
tagging         evaluator of `tag`; tells the scheme of the tags: IOB1, IOB2, BIOES, BILOU; **what counts as covered by
                `--redact`**
"""
