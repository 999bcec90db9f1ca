"""What models are made of: how a model is declared (`module.py`), its ops, its layers, its heads."""
