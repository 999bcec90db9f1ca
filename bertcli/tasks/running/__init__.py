"""How a task is run: windows of texts, batches, processes."""
