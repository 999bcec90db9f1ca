"""Model families, one file each (deberta has v2 and v3, deberta_v1 version 1); registry.py finds them.

Parts that several share are in network/.

config, rope   the bases of the families' configurations: config.json's keys, read and checked; **which settings are
               refused**
tensor_names   the notation of the families' tables: which tensor of a file holds a parameter; **which rows of a fused
               one**
registry       from a model_type to a family; from a checkpoint to its heads; **which family a folder is, and which
               heads it has; that ours goes before a plugin's of the same model_type**
"""
