"""From a model's name to its folder, and to the layout of that."""
