"""Load a network from a folder: read the files of tensors, map their names to parameters, apply adapters.

digest         digest weights: in memory to a key, in files to a fingerprint; **when two models count as equal**
loading        the way in: which parameter has which tensor; **tied or not; which tensors are unused, and what is said
               of them**
lora           LoRA adapters of peft: replace W by W + s · B A, and some tensors by the adapter's
network_files  the files of a network as they are stored
state_dict     the tensors of a `pytorch_model.bin`, read as data
tensors        the files of tensors; kinds/ read those of layers after the network with it; **which files of tensors are
               refused**
"""
