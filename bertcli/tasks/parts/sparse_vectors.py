"""The base class of tasks that give sparse vectors: the vocabulary entries whose weight is not 0."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bertcli.files.texts import Item
from bertcli.kinds.sparse_vectors import SparseVector
from bertcli.report.digits import short_rows
from bertcli.tasks.parts.prepared_task import PreparedBlock, PreparedTask
from bertcli.tasks.running.task import Record, TokenizedGroup
from bertcli.tokens import Tokenizer


@dataclass(frozen=True, eq=False, repr=False)
class SparseBlock(PreparedBlock):
    """Consecutive texts with their vectors, and with the option `words` the pieces of each one's entries."""

    vectors: list[SparseVector]
    words: list[list[str]] | None = None

    def values(self) -> Iterator[Record]:
        """{indices, values}, and with the option also `words`."""
        for number, vector in enumerate(self.vectors):
            words = {} if self.words is None else {"words": self.words[number]}
            yield {"indices": vector.indices.tolist(), "values": short_rows(vector.values), **words}


@dataclass(frozen=True, eq=False, repr=False)
class SparseTask(PreparedTask[SparseBlock]):
    """Sparse vectors; with `words` also the pieces of their entries."""

    words: bool

    @property
    def width(self) -> int:
        return self.model.config.vocab_size

    @property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer whose vocabulary the entries belong to."""
        return self.model.tokenizer

    def vectors(self, items: Sequence[Item]) -> list[SparseVector]:
        """The vector of each text."""
        raise NotImplementedError

    def compute(self, group: TokenizedGroup) -> SparseBlock:
        vectors = self.vectors(group.items)
        words = None
        if self.words:
            words = [[self.tokenizer.piece(index) for index in vector.indices.tolist()] for vector in vectors]
        return SparseBlock(group.progress, group.items, group.failures, vectors, words)
