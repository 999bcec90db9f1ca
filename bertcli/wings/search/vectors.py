"""The vectors by which search compares passages of files with queries: a dense one of each, or a sparse one."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from bertcli.files.search import similarities
from bertcli.files.texts import from_values
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.compute import encode
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.options import PromptedOptions
from bertcli.tasks.parts.prepared import for_role
from bertcli.tasks.parts.prepared_task import PreparedTask
from bertcli.tasks.running.run import results
from bertcli.tasks.running.task import length_limit
from bertcli.wings.search.index import Rows
from bertcli.wings.search.sparse_rows import Scores, SparseRows

P = TypeVar("P", bound=PromptedOptions)
# Tokens of a chunk of a long passage: a longer one is about more than one thing.
CHUNK = 256
# What no similarity of two vectors exceeds; the negative of a distance is at most 0.
MOST = {"cosine": 1.0, "dot": np.inf, "euclidean": 0.0, "manhattan": 0.0}
# Neighbouring chunks share one in so many of their tokens.
OVERLAP = 8


class Comparison(Protocol):
    """A way to encode passages and queries, and to compare their vectors."""

    settings: dict[str, Any]  # which must be equal for all vectors of an index
    width: int
    most: float  # what no score exceeds

    def task(self) -> PreparedTask[Any]:
        """The task that gives a block of vectors for passages, long ones in chunks."""

    def rows(self, block: Any) -> Rows:
        """The vectors of a block of that task."""

    def joined(self, blocks: Sequence[Rows]) -> Rows:
        """The vectors of several blocks or files."""

    def fits(self, rows: Rows) -> bool:
        """True if these are vectors of this model: finite, and of its width."""

    def scores(self, queries: Sequence[str], rows: Rows) -> Scores:
        """The similarity of each query with each passage [query, row]."""

    def among(self, texts: Sequence[str]) -> Scores:
        """The similarity of each of some short texts with each [text, text], all as passages."""


class DenseComparison:
    """One vector for a passage, compared by the model's similarity, or else by the cosine."""

    def __init__(self, model: LoadedModel, options: EncodeOptions) -> None:
        self._model = model
        self.most = MOST[model.kind.compared]
        # A prompt that is given is the query's.
        self._documents: EncodeOptions = for_role(model, "document", replace(options, prompt=None, prompt_name=None))
        self._queries: EncodeOptions = for_role(model, "query", options)
        self._task = encode.plan(model, _in_parts(model, self._documents))
        self.width = encode.Plan.make(model, self._documents).width
        self.settings = {**self._task.settings, "chunk": [*_in_parts(model, self._documents).chunk_sizes]}

    def task(self) -> PreparedTask[Any]:
        return self._task

    def rows(self, block: Any) -> Rows:
        return np.asarray(block.vectors)

    def joined(self, blocks: Sequence[Rows]) -> Rows:
        return np.concatenate([np.empty((0, self.width), np.float32), *map(_dense, blocks)])

    def fits(self, rows: Rows) -> bool:
        return _dense(rows).shape[1] == self.width and bool(np.isfinite(_dense(rows)).all())

    def scores(self, queries: Sequence[str], rows: Rows) -> Scores:
        vectors = encode.encode(self._model, queries, self._queries)
        return similarities(vectors, _dense(rows), self._model.kind.compared)

    def among(self, texts: Sequence[str]) -> Scores:
        vectors = encode.encode(self._model, texts, self._documents)
        return similarities(vectors, vectors, self._model.kind.compared)


class SparseComparison:
    """The weights of vocabulary entries (SPLADE, bge-m3), compared by their product, as `rank` does."""

    def __init__(self, model: LoadedModel, options: EncodeOptions) -> None:
        asked = replace(options, sparse=True)
        documents = for_role(model, "document", replace(asked, prompt=None, prompt_name=None))
        self._queries = encode.plan(model, for_role(model, "query", asked))
        self._documents = encode.plan(model, documents)
        self._task = encode.plan(model, _in_parts(model, documents))
        self._cosine = model.kind.sparse_compared == "cosine"
        self.most = MOST["cosine" if self._cosine else "dot"]
        self.width = model.config.vocab_size
        self.settings = {
            **self._task.settings, "chunk": [*_in_parts(model, documents).chunk_sizes], "sparse": True,
        }  # fmt: skip

    def task(self) -> PreparedTask[Any]:
        return self._task

    def rows(self, block: Any) -> Rows:
        return SparseRows.of(block.vectors)

    def joined(self, blocks: Sequence[Rows]) -> Rows:
        return SparseRows.joined([SparseRows.of([]), *map(_sparse, blocks)])

    def fits(self, rows: Rows) -> bool:
        return _sparse(rows).fits(self.width)

    def scores(self, queries: Sequence[str], rows: Rows) -> Scores:
        return self._products(self._queries, queries, rows)

    def among(self, texts: Sequence[str]) -> Scores:
        rows = self.joined([self.rows(block) for block in results(self._documents, from_values(texts))])
        return self._products(self._documents, texts, rows)

    def _products(self, task: PreparedTask[Any], texts: Sequence[str], rows: Rows) -> Scores:
        vectors = [vector for block in results(task, from_values(texts)) for vector in block.vectors]
        return np.array([_sparse(rows).products(vector, self.width, self._cosine) for vector in vectors])


def _dense(rows: Rows) -> NDArray[np.float32]:
    assert isinstance(rows, np.ndarray)
    return rows


def _sparse(rows: Rows) -> SparseRows:
    assert isinstance(rows, SparseRows)
    return rows


def _in_parts(model: LoadedModel, options: P) -> P:
    """Options that encode long texts in chunks, otherwise as given."""
    size = length_limit(model, options.max_length)
    if options.max_length is None:
        size = min(size, CHUNK)
    return replace(options, max_length=None, chunk=(size, size // OVERLAP))
