"""Read the sentence settings of a folder: pooling, layers after the network, late interaction, sparse vectors.

Nothing is computed here: tasks/compute/encode.py applies the settings.
"""
