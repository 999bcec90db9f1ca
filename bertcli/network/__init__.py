"""The network: modules and the ops they consist of, and one page for each family of models."""
