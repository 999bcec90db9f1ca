"""Describe a model: its parameters (`params/`), the operations of a forward pass (`trace/`), its folder (`info.py`)."""
