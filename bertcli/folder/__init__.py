"""From a model's name to its folder, and what that says of itself."""
