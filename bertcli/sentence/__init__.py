"""Read what comes after the network in a sentence-transformers folder: pooling, layers, sparse vectors.

config.py is the way in. It takes a Layout (folder/layout.py), which has the list of modules, prompts, and the settings
of late interaction. Nothing is computed here: tasks/compute/encode.py applies the settings.
"""
