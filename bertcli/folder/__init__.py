"""Find a model's folder (hub.py), and understand what lies where in it (layout.py). Tensors are read in weights/."""
