"""encode: texts to vectors."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bertcli.errors import BertcliError
from bertcli.inputs import Texts, from_values
from bertcli.model import Model
from bertcli.packing import Packed, pack
from bertcli.parts import Array
from bertcli.tasks.checks import check_finite, hidden_states
from bertcli.tasks.items import START, Failure, Item, Reading, Records, RecordStream, Tally, Truncation, Window, merged
from bertcli.tasks.plan import Plan, pool
from bertcli.tasks.run import results
from bertcli.tasks.windows import Task, in_micro_batches

SPAN = 5  # micro-batches in a window: memory is constant after a few hundred texts; 8 take 5 MB more, no faster
SPAN_OF_TOKENS = 4  # the same when every token's vector is kept


class Block(NamedTuple):
    """Consecutive texts with their vectors: an array [text, width], or (pooling none) one [token, width] per text.

    `failures` (only with keep_going) are texts among them without a vector; `tally` says how far the run has got.
    """

    items: list[Item]
    vectors: Array | list[Array]
    failures: Sequence[Failure] = ()
    tally: Tally = START

    def records(self) -> list[dict[str, Any]]:
        """{index, text, tokens, truncated, embedding}; for token vectors, `tokens` and `embeddings` are lists.

        `id` follows the index if the text has one.
        """
        pooled = isinstance(self.vectors, np.ndarray)
        computed = (
            {
                "index": item.index,
                **({} if item.text.id is None else {"id": item.text.id}),
                "text": item.text.text,
                "tokens": len(item.tokens.ids) if pooled else item.tokens.pieces,
                "truncated": item.tokens.truncated,
                "embedding" if pooled else "embeddings": vector.tolist(),
            }
            for item, vector in zip(self.items, self.vectors, strict=True)
        )
        return merged(computed, self.failures)


def encode(
    model: Model, texts: Iterable[str] | Texts, pairs: Iterable[str | None] | str | None = None, **options: Any
) -> Array:
    """One vector per text: float32 [text, width], in memory; the options are those of `encode_blocks`."""
    if options.get("pooling") == "none":
        raise BertcliError("With pooling none a text has more than one vector: use encode_blocks.")
    stream = encode_blocks(model, texts, pairs, **options)
    return np.concatenate(
        [np.empty((0, stream.plan.width), np.float32), *(np.asarray(block.vectors) for block in stream)]
    )


def encode_blocks(
    model: Model,
    texts: Iterable[str] | Texts,
    pairs: Iterable[str | None] | str | None = None,
    *,
    pooling: str = "auto",
    layer: int | Sequence[int] = -1,
    normalize: bool | None = None,
    max_length: int | None = None,
    truncation: Truncation = "warn",
    batch_tokens: int | None = None,
    truncate_dim: int | None = None,
    keep_going: bool = False,
    workers: int | None = None,
    start: Tally = START,
) -> Stream:
    """Vectors in blocks in input order, computed as they are asked for: they need not fit in memory.

    pooling: "auto" (as the checkpoint's sentence-transformers files specify, else mean), "mean", "cls", "max",
    "pooler", "none" (every token's vector). layer: 0 for the embeddings' output, N for encoder layer N's, negative from
    the end; several are concatenated. normalize: to length 1; None: as the checkpoint specifies. truncate_dim: keep
    only the first numbers of each vector, for models trained for that (Matryoshka); normalisation comes after the cut.
    keep_going: a text that cannot be used is listed in a block's `failures` instead of raising. workers: processes that
    share the windows, as `bertcli.tasks.run` explains; None for as many as are worth it. start: the `tally` of the last
    finished block; pass the same texts from the beginning and encoding resumes after it.
    """
    plan = Plan.make(model, pooling, layer, normalize, truncate_dim)
    reading = Reading(max_length, truncation, batch_tokens, keep_going, start)
    task = _Encode(model, reading, SPAN if plan.pooling else SPAN_OF_TOKENS, plan)
    return Stream(plan, results(task, from_values(texts, pairs), workers))


@dataclass(frozen=True)
class Stream:
    """The blocks of an encoding, which can be iterated over once, and the plan they follow."""

    plan: Plan
    blocks: Generator[Block, None, None]

    def __iter__(self) -> Iterator[Block]:
        return self.blocks

    def records(self) -> RecordStream:
        """The records of the blocks."""
        return RecordStream(self._records())

    def _records(self) -> Generator[Records, None, None]:
        with closing(self.blocks):
            for block in self.blocks:
                yield Records(block.records(), block.tally)


@dataclass(frozen=True, eq=False)
class _Encode(Task[Block]):
    plan: Plan

    def prepare(self, text: str) -> str:
        return self.plan.prepare(text)

    def prepare_pair(self, text: str) -> str:
        return self.plan.cased(text)

    def compute(self, window: Window) -> Block:
        items = window.items
        rows = in_micro_batches(
            [len(item.tokens.ids) for item in items],
            self.reading.tokens_together,
            lambda batch: self._vectors([items[i] for i in batch]),
        )
        return Block(items, self._stacked(rows) if self.plan.pooling else rows, window.failures, window.tally)

    def received(self, result: Block) -> Block:
        tokenizer = self.model.tokenizer
        return result._replace(items=[replace(item, tokens=item.tokens.known_to(tokenizer)) for item in result.items])

    def _stacked(self, rows: list[Array]) -> Array:
        return np.stack(rows) if rows else np.empty((0, self.plan.width), np.float32)

    def _vectors(self, items: list[Item]) -> Sequence[Array]:
        """Vectors of one micro-batch: [width] per text, or [token, width] per text if nothing is pooled."""
        packed = pack([item.tokens for item in items])
        if self.plan.only_first_tokens:
            vectors = self._first_tokens(packed)
        else:
            states = self._states(packed)
            if not self.plan.pooling:
                flat = self.plan.finish(np.concatenate(states, axis=1))
                check_finite(flat)
                return np.split(flat, packed.offsets[1:-1])
            modes = self.plan.pooling
            vectors = np.concatenate([pool(x, packed.offsets, mode) for x in states for mode in modes], axis=1)
        vectors = self.plan.finish(vectors)
        check_finite(vectors)
        return list(vectors)

    def _first_tokens(self, packed: Packed) -> Array:
        """Only what [CLS] pooling needs of the last layer."""
        first = hidden_states(self.model, packed, packed.first)
        pooler = self.model.network.pooler
        modes = self.plan.pooling
        return np.concatenate([pooler(first) if mode == "pooler" and pooler else first for mode in modes], axis=1)

    def _states(self, packed: Packed) -> list[Array]:
        """Hidden states [token, hidden] of the layers asked for; later ones are not run."""
        if self.plan.last_layer_only:
            return [hidden_states(self.model, packed)]
        found = {}
        for number, state in enumerate(self.model.network.states(packed)):
            if number in self.plan.layers:
                check_finite(state)
                found[number] = state
            if number == max(self.plan.layers):
                break
        return [found[number] for number in self.plan.layers]
