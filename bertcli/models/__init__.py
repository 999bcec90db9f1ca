"""The families that run, a file each: page, configuration, names of tensors, words for steps, published sizes."""
