"""search over files: passages are read, encoded (or taken from an index), and ranked by a query.

score = similarity of the vectors of query and passage; with keywords, its rank fused with BM25's (`bm25`); with a
reranker, that of its pair
"""

import logging
import os
import sys
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from itertools import groupby
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError, quoted
from bertcli.files.read.passages import PassageOfFile, digest_of, passages_in
from bertcli.files.texts import STANDARD_INPUT, Item, Text, Texts
from bertcli.loaded_model import LoadedModel
from bertcli.ranking import best_first
from bertcli.report.progress import progress
from bertcli.tasks.compute import rank
from bertcli.tasks.parts.prepared_task import PreparedBlock
from bertcli.tasks.parts.sample_sentences import PREDICATES, SENTENCES
from bertcli.tasks.rank import RankOptions
from bertcli.tasks.running.run import results
from bertcli.tasks.running.task import Record
from bertcli.weights.digest import signature
from bertcli.wings.search.bm25 import Keywords, fused
from bertcli.wings.search.index import FileVectors, Made, read_index, write_index
from bertcli.wings.search.rows import Rows, joined
from bertcli.wings.search.spec import QueryOptions, SearchOptions
from bertcli.wings.search.vectors import Comparison

logger = logging.getLogger("bertcli")
BETWEEN_WRITES = 60.0  # seconds of work after which an index is written, so that not more is lost
RERANKED = 50  # hits that a reranker reads
SPREADS = 3  # above the median: what hardly any pair of unrelated texts reaches
SPREAD = 1.4826  # the standard deviation of a normal distribution over its median absolute deviation


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
            "score": self.score,
            **headings,
            "text": chunk.text,
        }


class Passages:
    """The passages of files with their vectors.

    An index keeps the vectors: only files that have changed are encoded, and what is new is written to it, as soon as a
    minute's work is done, and when the run is interrupted. Errors: BertcliError for files without text, those that
    cannot be read, and a model without such vectors.
    """

    def __init__(self, model: LoadedModel, files: Sequence[str], search: SearchOptions, query: QueryOptions) -> None:
        model = model.for_prompt(query.prompt_name)
        self._search, column, index = search, search.column, search.index
        self._compared = Comparison(model, query.encode_options, search.sparse)
        if index is not None and STANDARD_INPUT in files:
            raise BertcliError("Standard input has no index: give files, or leave out --index.")
        self._index, task = index, self._compared.task
        self._made = Made(signature(model.name, model.files_read), self._compared.settings, task.width)
        entries = {} if index is None else read_index(index, self._made)
        in_files = {file: passages_in(file, column) for file in files}
        if not any(in_files.values()):
            where = files[0] if len(files) == 1 else f"these {len(files)} files"
            raise BertcliError(f"There is no text in {where} to search.")
        digests = {file: file if index is None else digest_of(file, column) for file in files}
        new = {digests[file]: file for file in files if digests[file] not in entries}
        entries = self._encode({digest: (file, in_files[file]) for digest, file in new.items()}, entries, digests)
        self.chunks: list[Located] = []
        for file in files:
            self.chunks += _located(file, in_files[file], entries[digests[file]], index)
        self.rows = joined([entries[digests[file]].rows for file in files])
        self._keywords: Keywords | None = None

    @property
    def keywords(self) -> Keywords:
        """The words of the passages, counted at the first use."""
        if self._keywords is None:
            self._keywords = Keywords([chunk.in_context for chunk in self.chunks])
        return self._keywords

    def hits(self, queries: Sequence[str], reranker: LoadedModel | None = None) -> Iterator[list[Hit]]:
        """The best passages for each query, best first; a note for a query that nothing is near to."""
        hybrid, top_k, least = self._search.hybrid, self._search.top_k, self._search.min_score
        if self._search.files_with_matches and reranker is None:
            top_k = len(self.chunks)  # one file may have all of the best hits, so that names need more of them
        chance = self.chance()
        scores = self._compared.scores(queries, self.rows)
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
            yield [hit for hit in best_hits if least is None or hit.score >= least]

    def chance(self) -> float:
        """The score that unrelated texts reach by chance: the median of pairs + 3 spreads (1.4826 times the MAD).

        It is -inf, a limit that everything exceeds, where not even equal texts reach it: these scores say nothing.
        These are built-in sentences that share no part, and not the passages: in files about one thing most pairs of
        passages are related.
        """
        scores = self._compared.among(SENTENCES)
        subject, predicate = np.divmod(np.arange(len(SENTENCES)), len(PREDICATES))
        unrelated = (subject[:, None] < subject) & (predicate[:, None] != predicate)
        pairs = scores[unrelated]
        median = float(np.median(pairs))
        chance = median + SPREADS * SPREAD * float(np.median(np.abs(pairs - median)))
        return chance if chance < self._compared.most else -np.inf

    def _encode(
        self,
        new: Mapping[str, tuple[str, list[PassageOfFile]]],
        entries: dict[str, FileVectors],
        digests: Mapping[str, str],
    ) -> dict[str, FileVectors]:
        """Encode the passages of new files, by their digests; the entries of all files that are used or still there."""
        begun = written = time.monotonic()
        entries = _still_there(entries, digests)
        count = 0
        try:
            for digest, encoded in self._encoded(new):
                entries[digest] = encoded
                count += len(encoded.spans)
                if time.monotonic() - written > BETWEEN_WRITES:
                    self._write(entries)
                    written = time.monotonic()
        except BaseException:  # Ctrl-C, too: what is done is kept
            if count:
                self._write(entries)
            raise
        if new:
            self._write(entries)
        self._say(count, len(new), time.monotonic() - begun)
        return entries

    def _write(self, entries: Mapping[str, FileVectors]) -> None:
        """Write the index, if there is to be one."""
        if self._index is not None:
            write_index(self._index, self._made, entries)

    def _encoded(self, new: Mapping[str, tuple[str, list[PassageOfFile]]]) -> Iterator[tuple[str, FileVectors]]:
        """The vectors of all passages of some files, by digest; a file's when all of it is encoded."""
        owners = [(digest, number) for digest, (_, passages) in new.items() for number in range(len(passages))]
        texts = [
            Text(passage.in_context, location=f"{file}, line {passage.line}")
            for file, passages in new.values()
            for passage in passages
        ]
        todo = deque(new)
        spans: dict[str, list[tuple[int, int, int]]] = {digest: [] for digest in new}
        rows: dict[str, list[Rows]] = {digest: [self._compared.no_rows] for digest in new}

        def complete(digest: str) -> tuple[str, FileVectors]:
            file, _ = new[digest]
            path = file if file == STANDARD_INPUT else os.path.abspath(file)
            of_file = np.array(spans.pop(digest), np.int32).reshape(-1, 3)
            return digest, FileVectors(path, of_file, joined(rows.pop(digest)))

        for block in self._blocks(texts):
            of_block, begin = self._compared.rows(block), 0
            for digest, items in groupby(block.items, key=lambda item: owners[item.index][0]):
                while todo[0] != digest:
                    yield complete(todo.popleft())
                of_file = [(owners[item.index][1], *_span(item)) for item in items]
                spans[digest] += of_file
                rows[digest].append(of_block.part(begin, begin + len(of_file)))
                begin += len(of_file)
        while todo:
            yield complete(todo.popleft())

    def _blocks(self, texts: Sequence[Text]) -> Iterator[PreparedBlock]:
        """The blocks of vectors of texts, with a bar on a terminal."""
        if not texts:
            return
        blocks = results(self._compared.task, Texts(texts, at_hand=True, count=len(texts)))
        if not sys.stderr.isatty():
            yield from blocks
            return

        def reached(block: PreparedBlock) -> tuple[int, float]:
            return block.progress.texts, block.progress.texts / len(texts)

        with closing(progress(blocks, "search", reached, "passages")) as shown:
            yield from shown

    def _say(self, count: int, files: int, seconds: float) -> None:
        """Say how long encoding took, and what would save it."""
        if not count:
            return
        texts = "1 text" if count == 1 else f"{count:,} texts"
        of_files = "1 file" if files == 1 else f"{files:,} files"
        hint = "; --index FILE keeps the vectors for the next time" if self._index is None else ""
        logger.info("%s of %s encoded in %.1f s%s.", texts, of_files, seconds, hint)

    def _once(self, order: NDArray[np.intp], count: int) -> list[int]:
        """The best chunk of each of the first `count` passages."""
        chosen: dict[tuple[str, int], int] = {}
        for i in order.tolist():
            chosen.setdefault(self.chunks[i].passage, i)
            if len(chosen) == count:
                break
        return [*chosen.values()]


def files_of(hits: Sequence[Hit], top_k: int) -> list[Record]:
    """Records {query, file, score} of the first `top_k` files that have a hit which is near, by their best one."""
    best: dict[str, Hit] = {}
    for hit in hits:
        if hit.near:
            best.setdefault(hit.chunk.file, hit)
    return [{"query": hit.query, "file": file, "score": hit.score} for file, hit in [*best.items()][:top_k]]


def _span(item: Item) -> tuple[int, int]:
    """The first and last character of an item: a chunk's count in the passage with its headings."""
    return (item.chunk.start, item.chunk.end) if item.chunk else (0, len(item.text.text))


def _still_there(entries: Mapping[str, FileVectors], digests: Mapping[str, str]) -> dict[str, FileVectors]:
    """Keep the entries of an index that are used now, or whose files exist; drop older states of a file."""
    used, paths = set(digests.values()), {os.path.abspath(file) for file in digests}
    return {
        digest: entry
        for digest, entry in entries.items()
        if digest in used or (entry.path not in paths and os.path.exists(entry.path))
    }


def _located(file: str, passages: list[PassageOfFile], entry: FileVectors, index: str | None) -> Iterator[Located]:
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
    pairs = rank.pairs_of(hits[0].query, documents)
    records = [record for block in results(rank.plan(reranker, options), pairs) for record in block.records()]
    return [hits[record["corpus_id"]]._replace(score=record["score"]) for record in records]
