"""How good a model is on labelled data, with intervals, and which of two is better. Nothing in the house imports it."""
