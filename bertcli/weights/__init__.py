"""Load a network from a folder: read the files of tensors, map their names to parameters, apply adapters."""
