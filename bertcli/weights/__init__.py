"""Load a network from a folder: read the files of tensors, map their names to parameters, apply adapters.

loading.py is the way in. Tensors of layers after the network are read by kinds/, with tensors.py.
digest         digest weights: in memory to a key, in files to a signature
lora           LoRA adapters of peft: replace W by W + s · B A, and some tensors by the adapter's
network_files  the files of a network as they are stored
state_dict     the tensors of a `pytorch_model.bin`, read as data
"""
