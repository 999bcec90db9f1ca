"""How search encodes passages and queries, and compares them: by a dense vector of each, or a sparse one."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bertcli.files.search import Scores
from bertcli.files.texts import from_values
from bertcli.loaded_model import LoadedModel
from bertcli.tasks.compute import encode
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.parts.prepared import for_queries, for_role, note_prompts
from bertcli.tasks.parts.prepared_task import PreparedTask
from bertcli.tasks.parts.sample_sentences import PREDICATES, SENTENCES
from bertcli.tasks.running.run import results
from bertcli.tasks.running.task import length_limit
from bertcli.wings.search.rows import DenseRows, Rows, SparseRows

# Tokens of a chunk of a long passage: a longer one is about more than one thing.
CHUNK = 256
# Neighbouring chunks share one in so many of their tokens.
OVERLAP = 8
SPREADS = 3  # above the median: what hardly any pair of unrelated texts reaches
SPREAD = 1.4826  # the standard deviation of a normal distribution over its median absolute deviation
# What no similarity of two vectors exceeds; the negative of a distance is at most 0.
MOST = {"cosine": 1.0, "dot": np.inf, "euclidean": 0.0, "manhattan": 0.0}


class Comparison:
    """The comparison of passages with queries, as the model compares: by similarity, or (sparse) as `rank` does.

    task       gives blocks of vectors for passages, long ones in chunks
    settings   must be equal for all vectors of an index
    rows_of    makes rows of a block's vectors
    no_rows    the vectors of no passages
    """

    def __init__(self, model: LoadedModel, options: EncodeOptions, sparse: bool) -> None:
        asked = replace(options, sparse=sparse)
        self._how = model.kind.sparse_compared if sparse else model.kind.compared
        # A prompt that is given is the query's.
        documents = for_role(model, "document", replace(asked, prompt=None, prompt_name=None))
        model = model.for_prompt(documents.prompt_name)
        size = length_limit(model, options.max_length)
        if options.max_length is None:
            size = min(size, CHUNK)
        in_chunks = replace(documents, max_length=None, chunk=(size, size // OVERLAP))
        self.task: PreparedTask[Any] = encode.plan(model, in_chunks)
        self._queries: PreparedTask[Any] = encode.plan(model, for_queries(model, asked))
        note_prompts(self._queries.prompt, self.task.prompt)
        self.rows_of: Callable[[Any], Rows] = SparseRows.of if sparse else DenseRows.of
        self.no_rows: Rows = SparseRows.of([]) if sparse else DenseRows(np.empty((0, self.task.width), np.float32))
        self.settings = {**self.task.settings, "chunk": [*in_chunks.chunk_sizes]}
        if sparse:
            self.settings["sparse"] = True

    def scores(self, queries: Sequence[str], rows: Rows) -> Scores:
        """The similarity of each query with each passage [query, row]."""
        return rows.scores(_vectors(self._queries, queries), self._how)

    def chance(self) -> float:
        """The score that unrelated texts reach by chance: the median of pairs + 3 spreads (1.4826 times the MAD).

        It is -inf, a limit that everything exceeds, where not even equal texts reach it: these scores say nothing.
        These are built-in sentences that share no part, and not the passages: in files about one thing most pairs of
        passages are related.
        """
        # Nobody is told where they are cut.
        read_options = replace(self.task.read_options, truncation="silent")
        vectors = _vectors(replace(self.task, chunking=None, read_options=read_options), SENTENCES)
        scores = self.rows_of(vectors).scores(vectors, self._how)
        subject, predicate = np.divmod(np.arange(len(SENTENCES)), len(PREDICATES))
        unrelated = (subject[:, None] < subject) & (predicate[:, None] != predicate)
        pairs = scores[unrelated]
        median = float(np.median(pairs))
        chance = median + SPREADS * SPREAD * float(np.median(np.abs(pairs - median)))
        return chance if chance < MOST[self._how] else -np.inf


def _vectors(task: PreparedTask[Any], texts: Sequence[str]) -> list[Any]:
    return [vector for block in results(task, from_values(texts)) for vector in block.vectors]
