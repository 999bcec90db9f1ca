"""What sentence-transformers folders have besides a network: pooling, layers, late interaction, sparse vectors."""
