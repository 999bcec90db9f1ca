"""Output shapes as the Keras summary writes them."""

from __future__ import annotations

from typing import NamedTuple

from bertcli.config import BertConfig

Shape = tuple[int | str, ...]  # "B" and "S" stand for the batch and the tokens of a sentence
IDS: Shape = ("B", "S")


class Input(NamedTuple):
    """The size of the input; a batch of None means any size."""

    tokens: int
    batch: int | None = None

    @classmethod
    def checked(cls, config: BertConfig, seq_len: int | None, batch_size: int | None) -> Input:
        """An input that the model has positions for; by default it uses all of them. Raises BertcliError."""
        config.check_input(batch_size, seq_len)
        return cls(seq_len or config.max_position_embeddings, batch_size)

    def text(self, shape: Shape) -> str:
        """`(None, 512, 768)`"""
        sizes = {"B": self.batch, "S": self.tokens}
        return f"({', '.join(str(sizes[axis] if isinstance(axis, str) else axis) for axis in shape)})"
