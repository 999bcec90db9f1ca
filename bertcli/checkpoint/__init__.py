"""From a model's name to a network: hub, config.json, tensors, names, sentence-transformers files."""
