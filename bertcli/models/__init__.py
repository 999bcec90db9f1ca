"""Model families, one file each; registry.py finds them. Parts that several share are in network/."""
