"""A classifier of one's own in place of the classification head of a model of any kind (-m BASE+FILE.safetensors).

kind   `OwnClassifier`: which questions it answers itself, and which the kind of its base
file   the file that `bertcli probe -o` writes: what is in it, **which model it fits**, its logits
"""
