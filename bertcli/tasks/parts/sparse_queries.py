"""encode --sparse of queries with a Router's table of weights (inference-free SPLADE): the network does not run.

w_v = table_v if piece v occurs in the query, else 0; special tokens do not count
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bertcli.errors import BertcliError, check_count, check_finite
from bertcli.files.texts import Item, Text
from bertcli.folder.files import Folder
from bertcli.folder.layout import Layout
from bertcli.kinds.query_tables import read_table
from bertcli.kinds.sparse_vectors import SparseVector, largest
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.parts.sparse_vectors import SparseTask
from bertcli.tokens import Tokenizer, Tokens
from bertcli.tracing.dispatch import Array

# Tokens of a query whose tokenizer sets no limit.
MOST_QUERY_TOKENS = 1 << 20


def plan_queries(model: LoadedModel, options: EncodeOptions, table: Folder) -> "SparseQueries":
    """Make the task. table: the folder of the route that `prompt_name` names."""
    assert options.prompt_name is not None
    if options.chunk is not None:
        raise BertcliError("A query has one vector: leave out chunk (--chunk).")
    kind, route = model.kind, options.prompt_name
    prompt = kind.prompts.get(route, kind.prompt)
    most = kind.sparse_weights.max_active
    return SparseQueries(model, options.read_options, None, 0, options.words, most, table, prompt=prompt)


@dataclass(frozen=True, eq=False, repr=False)
class SparseQueries(SparseTask):
    """Sparse vectors of queries, the `most` largest weights, from the table in this folder."""

    most: int | None
    table: Folder

    @property
    def summary(self) -> str:
        file = self.table.path.name
        return f"the weights of a query's pieces, from {file}; no pass of the network{super().summary}"

    @cached_property
    def tokenizer(self) -> Tokenizer:
        """The tokenizer in the table's folder."""
        return Tokenizer.open(Layout(self.table))

    @cached_property
    def weights(self) -> Array:
        """The weights [vocabulary]."""
        table = read_table(self.table)
        pieces = table.weights if isinstance(table.weights, dict) else ()
        weights = table.by_id({piece: self.tokenizer.id_of(piece) for piece in pieces})
        check_finite(weights)
        return weights

    @cached_property
    def limit(self) -> int:
        most = self.read_options.max_length or self.tokenizer.model_max_length or MOST_QUERY_TOKENS
        check_count("max_length (--max-length)", most)
        _ = self.weights  # an error now, not at the first query
        return int(most)

    @property
    def may_be_empty(self) -> bool:
        return True

    def items(self, numbered: Sequence[tuple[int, Text]]) -> list[Item]:
        if any(text.pair is not None for _, text in numbered):
            raise BertcliError("A query has no second text: leave it out (text_pair).")
        prepared = [self.prompt + text.text for _, text in numbered]
        whole = self.tokenizer.encode(prepared, None, self.limit + self.tokenizer.special_count(False))
        return [Item(index, text, _bare(tokens)) for (index, text), tokens in zip(numbered, whole, strict=True)]

    def vectors(self, items: Sequence[Item]) -> list[SparseVector]:
        return [self._vector(item.tokens) for item in items]

    def _vector(self, tokens: Tokens) -> SparseVector:
        ids = np.unique(np.array(tokens.ids, np.int64))
        if len(ids) and ids[-1] >= len(self.weights):
            piece = self.tokenizer.piece(int(ids[-1]))
            raise BertcliError(f"The table for queries has no weight of {piece!r}: use another model.")
        values = self.weights[ids]
        counts = values != 0
        return largest(ids[counts], values[counts], self.most)


def _bare(tokens: Tokens) -> Tokens:
    """Remove the special tokens around a text."""
    of_text = [position for position, side in enumerate(tokens.sides) if side is not None]
    ids = [tokens.ids[position] for position in of_text]
    segments = [tokens.segments[position] for position in of_text]
    return replace(tokens, ids=ids, segments=segments)
