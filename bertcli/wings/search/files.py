"""search over files: passages are read, encoded (or taken from an index), and ranked by a query.

score = similarity of the vectors of query and passage; with keywords, its rank fused with BM25's (`bm25`); with a
reranker, that of its pair
"""

import logging
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.engine.pauses import check_wanted
from bertcli.errors import BertcliError, number_of, quoted
from bertcli.files.read.passages import PassageOfFile, digest_of, passages_in
from bertcli.files.texts import STANDARD_INPUT, Text, Texts
from bertcli.loaded_model import LoadedModel
from bertcli.ranking import best_first
from bertcli.report.digits import at_least, short
from bertcli.report.progress import progress
from bertcli.tasks.compute.rank import pairs_of
from bertcli.tasks.limits import NO_LIMITS, DoorLimits, TooMuch, most_vectors, over
from bertcli.tasks.rank import SPEC, RankOptions
from bertcli.tasks.request import Request, run
from bertcli.tasks.running.run import results
from bertcli.tasks.running.task import Record
from bertcli.weights.digest import fingerprint
from bertcli.wings.search.bm25 import Keywords, fused
from bertcli.wings.search.index import FileVectors, KeptVectors, Made, divided, remove_outdated
from bertcli.wings.search.rows import joined
from bertcli.wings.search.spec import QueryOptions, SearchOptions
from bertcli.wings.search.vectors import Comparison

logger = logging.getLogger("bertcli")
BETWEEN_WRITES = 60.0  # seconds of work after which an index is written, so that not more is lost
RERANKED = 50  # hits that a reranker reads


class Located(NamedTuple):
    """A chunk of a passage, with its file and lines, and the headings above it, or ""; `passage` names the passage."""

    file: str
    line: int
    last: int
    text: str
    in_context: str
    passage: tuple[str, int]
    headings: str


class Hit(NamedTuple):
    """A chunk that was found for a query; `near`: its score is beyond chance."""

    query: str
    chunk: Located
    score: float
    near: bool

    @property
    def record(self) -> Record:
        """{query, file, line, score, text}; of a paragraph below headings also headings, "Menu > Drinks"."""
        chunk = self.chunk
        headings = {"headings": chunk.headings} if chunk.headings else {}
        return {
            "query": self.query,
            "file": chunk.file,
            "line": chunk.line,
            "score": short(self.score),
            **headings,
            "text": chunk.text,
        }


class Passages:
    """The passages of files with their vectors.

    An index keeps the vectors: only files that have changed are encoded, and what is new is written to it, as soon as a
    minute's work is done, and when the run is interrupted. kept: keeps them in memory, too. limits: of the door.
    Errors: BertcliError for files without text, those that cannot be read, and a model without such vectors; TooMuch.
    """

    def __init__(
        self,
        model: LoadedModel,
        files: Sequence[str],
        search: SearchOptions,
        query: QueryOptions,
        kept: KeptVectors | None = None,
        limits: DoorLimits = NO_LIMITS,
    ) -> None:
        self._kept = kept or KeptVectors(search.index)
        model = model.for_prompt(query.prompt_name)
        self._search, column, index = search, search.column, search.index
        self._comparison = Comparison(model, query.encode_options, search.sparse)
        if index is not None and STANDARD_INPUT in files:
            raise BertcliError("Standard input has no index: give files, or leave out --index.")
        task = self._comparison.task
        # A Router may have another network for the queries.
        encoder = task.model
        self._made = Made(fingerprint(encoder.name, encoder.files_read), self._comparison.settings, task.width)
        entries = self._kept.read(self._made)
        in_files = _read(files, column, task.width, limits)
        if not any(in_files.values()):
            where = files[0] if len(files) == 1 else f"these {len(files)} files"
            raise BertcliError(f"There is no text in {where} to search.")
        digests = {file: digest_of(file, column) if self._kept.is_used else file for file in files}
        new = {digest: file for file, digest in digests.items() if digest not in entries}
        if new:
            remove_outdated(entries, files, {*digests.values()})
            self._encode({digest: (file, in_files[file]) for digest, file in new.items()}, entries)
        self._kept.remember(self._made, entries, {*digests.values()})
        self.chunks: list[Located] = []
        for file in files:
            self.chunks += _located(file, in_files[file], entries[digests[file]], index or file)
        self.rows = joined([entries[digests[file]].rows for file in files])

    @cached_property
    def keywords(self) -> Keywords:
        """The words of the passages, counted at the first use."""
        return Keywords([chunk.in_context for chunk in self.chunks])

    def hits(self, queries: Sequence[str], reranker: LoadedModel | None = None) -> Iterator[list[Hit]]:
        """The best passages for each query, best first; a note for a query that nothing is near to."""
        if not queries:
            return
        hybrid, top_k, least = self._search.hybrid, self._search.top_k, self._search.min_score
        if self._search.files_with_matches and reranker is None:
            top_k = len(self.chunks)  # one file may have all of the best hits, so that names need more of them
        chance = self._comparison.chance()
        scores = self._comparison.scores(queries, self.rows)
        for query, similar in zip(queries, scores, strict=True):
            ranked = fused(similar, self.keywords.bm25(query)) if hybrid else similar
            best = self._once(best_first(ranked), top_k if reranker is None else max(top_k, RERANKED))
            near = similar > chance
            if hybrid:
                # A passage with every word of the query is found, whatever its vector is.
                near |= self.keywords.has_all(query)
            if not near.any():
                logger.info(
                    "nothing is near to %s: the best similarity is %.2f, and unrelated sentences reach %.2f by chance.",
                    quoted(query), similar.max(), chance,
                )  # fmt: skip
            hits = [Hit(query, self.chunks[i], float(ranked[i]), bool(near[i])) for i in best]
            best_hits = (hits if reranker is None else _reranked(reranker, hits))[:top_k]
            yield [hit for hit in best_hits if at_least(hit.score, least)]

    def _encode(self, new: Mapping[str, tuple[str, list[PassageOfFile]]], entries: dict[str, FileVectors]) -> None:
        """Encode the passages of new files, by their digests; add them to the entries, which the index keeps.

        It is also written after each minute of work, and when the work is interrupted, with the files that are done.
        """
        texts = [
            Text(passage.in_context, location=f"{file}, line {passage.line}")
            for file, passages in new.values()
            for passage in passages
        ]
        blocks = results(self._comparison.task, Texts(texts, at_hand=True, count=len(texts)))
        if sys.stderr.isatty():

            def reached(block: Any) -> tuple[int, float]:
                return block.progress.texts, block.progress.texts / len(texts)

            blocks = progress(blocks, "search", reached, "passages")
        parts: list[tuple[int, int, int]] = []  # a text's number, and the first and last character of a part of it
        rows = [self._comparison.no_rows]
        done = 0
        begun = written = time.monotonic()

        def keep() -> None:
            """Add the files that are done to the entries, and write these, if there is an index."""
            entries.update(divided(new, parts, joined(rows), done))
            if not new.keys().isdisjoint(entries):
                self._kept.write(self._made, entries)
                self._kept.remember(self._made, entries, new.keys())

        try:
            with closing(blocks):
                for block in blocks:
                    rows.append(self._comparison.rows_of(block.vectors))
                    for item in block.items:
                        start, end = (item.chunk.start, item.chunk.end) if item.chunk else (0, len(item.text.text))
                        parts.append((item.index, start, end))
                    done = block.progress.texts
                    if time.monotonic() - written > BETWEEN_WRITES:
                        keep()
                        written = time.monotonic()
        finally:  # after Ctrl-C, too
            keep()
        hint = "" if self._kept.is_used else "; --index FILE keeps the vectors for the next time"
        if parts:
            encoded, files = number_of(len(parts), "text"), number_of(len(new), "file")
            logger.info("%s of %s encoded in %.1f s%s.", encoded, files, time.monotonic() - begun, hint)

    def _once(self, order: NDArray[np.intp], count: int) -> list[int]:
        """The best chunk of each of the first `count` passages."""
        chosen: dict[tuple[str, int], int] = {}
        for i in order.tolist():
            chosen.setdefault(self.chunks[i].passage, i)
            if len(chosen) == count:
                break
        return [*chosen.values()]


def _read(files: Sequence[str], column: str | None, width: int, limits: DoorLimits) -> dict[str, list[PassageOfFile]]:
    """Read the passages of each file, with vectors of this width. Errors: BertcliError; TooMuch."""
    most = most_vectors(width, limits)
    in_files: dict[str, list[PassageOfFile]] = {}
    count = 0
    for file in files:
        check_wanted()
        in_files[file] = passages = passages_in(file, column, None if most is None else most - count)
        count += len(passages)
        if over(count, most):
            raise TooMuch(f"These files have more than {most:,} passages: name fewer.", "too_large")
        for passage in passages:
            if over(len(passage.in_context), limits.characters):
                why = f"{file}, line {passage.line} has {len(passage.in_context):,} characters"
                raise TooMuch(f"{why}, more than {limits.characters:,}: divide it.", "too_long")
    return in_files


def files_of(hits: Sequence[Hit], top_k: int) -> list[Record]:
    """Records {query, file, score} of the first `top_k` files that have a hit which is near, by their best one."""
    best: dict[str, Hit] = {}
    for hit in hits:
        if hit.near:
            best.setdefault(hit.chunk.file, hit)
    return [{"query": hit.query, "file": file, "score": short(hit.score)} for file, hit in [*best.items()][:top_k]]


def _located(file: str, passages: list[PassageOfFile], entry: FileVectors, index: str) -> Iterator[Located]:
    """The chunks of a file's passages. Errors: BertcliError for an index that does not fit the file."""
    for number, start, end in entry.spans.tolist():
        if not (0 <= number < len(passages) and 0 <= start <= end <= len(passages[number].in_context)):
            raise BertcliError(f"{index} is damaged: delete it, and the next search writes a new one.")
        passage = passages[number]
        before = len(passage.in_context) - len(passage.text)  # the headings'
        start, end = max(start - before, 0), max(end - before, 0)
        text = passage.text[start:end].strip() or passage.text
        begin = start + len(passage.text[start:end]) - len(passage.text[start:end].lstrip())
        line, last = passage.line, passage.last
        if passage.spans_lines:
            line += passage.text[:begin].count("\n")
            last = line + text.count("\n")
        in_context = f"{passage.context}\n{text}" if passage.context else text
        yield Located(file, line, last, text, in_context, (file, number), passage.context)


def _reranked(reranker: LoadedModel, hits: list[Hit]) -> list[Hit]:
    """Hits in the order, and with the scores, of a reranker."""
    documents = [hit.chunk.in_context for hit in hits]
    options = RankOptions(documents)
    request = Request(SPEC, options, pairs_of(hits[0].query, documents), lambda: reranker)
    records = [record for block in run(request) for record in block.records()]
    return [hits[record["corpus_id"]]._replace(score=record["score"]) for record in records]
