"""The parts of models: how a model is declared (module.py), the ops, layers, and heads. Families are in models/.

axes                     the glossary of axes, and the order of their symbols; **what a letter means**
module                   fields that declare a tree of modules and arrays; `build` and `walk`; **is a head, a bias or a
                         part there**
ops, position_ops        every arithmetic step, with its shape and cost; engine/ computes them; **what an op costs**
encoder, heads           BERT's encoder; prediction heads, and the root of every family; **which rows the last layer
                         computes**
prenorm, rotary          layers of newer families: norms before them, rotary positions, gates; **which
                         state their heads read: the last token's, the mean, or each one's, and then the mean of the
                         logits ("late")**
after_pooling            the Dense layers of sentence models
traced_tree              the copy of a tree that a tracer runs
"""
