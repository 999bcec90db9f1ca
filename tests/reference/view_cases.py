"""What explain, lens, heads and diff are asked in the tests, and by the script that records the answers."""

from typing import Any

LABELS: dict[str, Any] = {"head": "classifier", "num_labels": 3, "seed": 401, "tokenizer": "both"}
MASKS: dict[str, Any] = {"head": "mlm", "seed": 402, "tokenizer": "both"}
VECTORS: dict[str, Any] = {"head": "model", "seed": 403, "tokenizer": "both"}

TEXTS = ("The unbelievably good king drank hot tea, and naïve dogs sat on the mat.", "Paris", "She said: run!")
PAIR = ("The cat sat on the mat.", "Who sat, and where?")
MASKED = "The queen [MASK] a cup of hot tea in Paris."
OTHER = "A dog walks down the river."
