"""An encoder with an adapter (LoRA) for each task (jina-embeddings-v5): a vector for a text, by one of them.

kind         `TaskEncoder`: how its own code pools
folder_type  such a folder has its adapters in adapters/TASK; **which there are**

Which of two families its network is, models/registry.py says. An adapter is applied as any other (weights/lora.py).
"""
