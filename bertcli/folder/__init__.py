"""Find a model's folder (hub.py), and read once what its small files say (layout.py). Tensors are read in weights/."""
