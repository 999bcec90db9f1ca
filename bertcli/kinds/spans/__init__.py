"""A span model (GLiNER): entities of the types that a request names, in any words, as spans of whole words.

kind.py          `Spans`: what it is for
folder_type.py   gliner_config.json marks such a folder; what it lacks is its backbone's
"""
