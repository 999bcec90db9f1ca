"""One file a family; `registry.py` finds them."""
