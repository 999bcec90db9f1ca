"""From a model's folder to a network: files of tensors, their names, adapters."""
