"""Load a network from a folder: read the files of tensors, map their names to parameters, apply adapters.

loading.py is the way in. Tensors of layers after the network are read by kinds/, with tensors.py.
"""
