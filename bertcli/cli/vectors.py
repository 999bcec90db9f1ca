"""Writes vectors to files of arrays, or to Parquet next to their texts: what `bertcli encode -o` does."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bertcli.cli.job import Job, reached
from bertcli.inputs import Texts
from bertcli.model import Model
from bertcli.output.draft import Draft
from bertcli.output.parquet import ParquetFile, Row
from bertcli.output.vectors import WRITERS, Column, VectorFile
from bertcli.quantise import quantise, stored_width
from bertcli.tasks import Block, Stream, Tally

if TYPE_CHECKING:
    from collections.abc import Callable

ERRORS = ".errors.jsonl"  # appended to the file's name for the list of texts that could not be used
STORED = {"float32": "<f4", "float16": "<f2", "int8": "|i1", "binary": "|u1"}
Arrays = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class Form:
    """How vectors are stored: how many numbers, of which type, one per text or (ragged) one per token."""

    width: int
    dtype: str
    ragged: bool

    def columns(self, ending: str) -> list[Column]:
        """The arrays of a file; a .npy file holds only one."""
        found = [Column("embeddings", STORED[self.dtype], stored_width(self.width, self.dtype))]
        if self.dtype == "int8" and ending != ".npy":
            found.append(Column("scales", "<f4"))
        return [*found, Column("offsets", "<i8")] if self.ragged else found

    def arrays(self, block: Block, tokens: int) -> Arrays:
        """Rows for a block's texts in order; a failure has a row of zeros, or no tokens. `tokens` precede the block."""
        count = len(block.items) + len(block.failures)
        places = [item.index - (block.tally.texts - count) for item in block.items]
        if not self.ragged:
            stored = quantise(np.asarray(block.vectors), self.dtype)
            return {"embeddings": _spread(stored.values, places, count), **self._scales(stored.scales, places, count)}
        lengths = np.zeros(count, np.int64)
        lengths[places] = [len(vectors) for vectors in block.vectors]
        stored = quantise(np.concatenate([np.empty((0, self.width), np.float32), *block.vectors]), self.dtype)
        scales = {} if stored.scales is None else {"scales": stored.scales}
        return {"embeddings": stored.values, **scales, "offsets": tokens + np.cumsum(lengths)}

    def _scales(self, scales: NDArray[np.float32] | None, places: list[int], count: int) -> Arrays:
        return {} if scales is None else {"scales": _spread(scales, places, count)}


def _spread(rows: NDArray[Any], places: list[int], count: int) -> NDArray[Any]:
    """Rows at their places among `count`, zeros elsewhere."""
    if len(rows) == count:
        return rows
    spread = np.zeros((count, *rows.shape[1:]), rows.dtype)
    spread[places] = rows
    return spread


def write_vectors(job: Job, source: Texts, model: Model, form: Form, begin: Callable[[Tally], Stream]) -> Tally:
    """Write the blocks of `begin(tally)`; if there are failures, their list is written next to the file."""
    with job.draft(source, model) as draft:
        tally = reached(draft)
        if draft.whole:
            draft.publish_again()
            return tally
        file = _ParquetRows(draft, form, job) if job.ending == ".parquet" else _ArrayRows(draft, form, job.ending)
        with job.counted(begin(tally).blocks, source) as blocks:
            for block in blocks:
                tally = block.tally
                file.append(block)
                draft.step(tally._asdict())
        draft.publish(file.finish())
        if not tally.failed:
            Path(f"{draft.path}{ERRORS}").unlink(missing_ok=True)  # the list of an earlier file, now replaced
    return tally


class _ArrayRows:
    """Writes blocks to .npy, .npz or .safetensors."""

    def __init__(self, draft: Draft, form: Form, ending: str) -> None:
        self._draft, self._form = draft, form
        self._file: VectorFile = WRITERS[ending](draft, form.columns(ending))
        self._errors = draft.part("errors")
        if form.ragged and not self._file.rows()[-1]:
            self._file.append({**form.arrays(Block([], []), 0), "offsets": np.zeros(1, np.int64)})

    def append(self, block: Block) -> None:
        self._file.append(self._form.arrays(block, self._file.rows()[0]))
        with self._draft.failures():
            for failure in block.failures:
                self._errors.write(json.dumps(failure.record(), ensure_ascii=False).encode("utf-8", "replace") + b"\n")

    def finish(self) -> dict[str, str]:
        listed = {"errors": ERRORS} if self._errors.size else {}
        return {**listed, **self._file.finish()}


class _ParquetRows:
    """Writes blocks to .parquet, with columns id (from the input, else the text's number), text, and if there are any
    text_pair and error."""

    def __init__(self, draft: Draft, form: Form, job: Job) -> None:
        self._form = form
        texts = job.texts
        paired = texts.text_pair is not None or texts.pair_column is not None
        names = ["id", "text", *(["text_pair"] if paired else []), *(["error"] if job.long.keep_going else [])]
        self._own_ids = job.options["--id-column"] is not None
        self._file = ParquetFile(draft, form.columns(".parquet"), names)

    def append(self, block: Block) -> None:
        found: list[tuple[int, Row]] = [
            (item.index, _row(item.index if item.text.id is None else item.text.id, item.text.text, item.text.pair))
            for item in block.items
        ]
        for failure in block.failures:
            id = failure.text.id if self._own_ids else failure.index
            found.append((failure.index, {**_row(id, None, None), "error": failure.error}))
        self._file.append(self._form.arrays(block, 0), [row for _, row in sorted(found, key=lambda pair: pair[0])])

    def finish(self) -> dict[str, str]:
        return self._file.finish()


def _row(id: str | int | None, text: str | None, pair: str | None) -> dict[str, str | int | None]:
    return {"id": id, "text": text, "text_pair": pair, "error": None}
