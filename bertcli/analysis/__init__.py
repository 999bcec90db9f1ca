"""Describe a model: its parameters (`params/`), the operations of a forward pass (`trace/`), its folder (`info.py`).

params/             the summary of modules and parameters, and `bertcli params`
trace/              every operation of a pass, its costs, and the page of the pass
info                what `bertcli info` says of a model
layers              layers and heads as people count them; **what `--layer 3.2` means**
texts               the tokens of a text for traces and views; **which tokens of two texts are aligned**
"""
