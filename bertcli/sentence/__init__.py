"""Sentence settings of a folder: pooling, layers after the network, late interaction, sparse vectors."""
