"""Output shapes as the Keras summary writes them."""

from __future__ import annotations

from typing import NamedTuple

from bertcli.config import BertConfig
from bertcli.errors import BertcliError

Shape = tuple[int | str, ...]  # "B" and "S" where the batch and the tokens of a sentence stand
IDS: Shape = ("B", "S")


class Input(NamedTuple):
    """The size of the input; a batch of None is any."""

    tokens: int
    batch: int | None = None

    @classmethod
    def checked(cls, config: BertConfig, seq_len: int | None, batch_size: int | None) -> Input:
        """An input that the model has positions for; by default as long as there are. Raises BertcliError."""
        longest = config.max_position_embeddings
        if seq_len is not None and not 1 <= seq_len <= longest:
            raise BertcliError(f"A sequence length of {seq_len} is not possible; with this model it is 1 to {longest}.")
        if batch_size is not None and batch_size < 1:
            raise BertcliError(f"A batch size of {batch_size} is not possible; it is 1 or more.")
        return cls(seq_len or longest, batch_size)

    def text(self, shape: Shape) -> str:
        """`(None, 512, 768)`"""
        sizes = {"B": self.batch, "S": self.tokens}
        return f"({', '.join(str(sizes[axis] if isinstance(axis, str) else axis) for axis in shape)})"
