"""What BERT is used for, as functions that take any iterable of texts and give records in input order.

Each file is one task, imported on its own, so that a command need not wait for the others.
"""
