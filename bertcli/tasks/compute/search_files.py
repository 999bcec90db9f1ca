"""search over files: passages are read, encoded (or taken from an index), and ranked by a query.

score = similarity of the vectors of query and passage; with keywords, its rank fused with BM25's (`keywords`); with a
reranker, that of its pair
"""

import logging
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError, quoted
from bertcli.files.read.passages import PassageOfFile, digest_of, passages_in
from bertcli.files.search import similarities
from bertcli.files.search_index import FileVectors, Made, read_index, write_index
from bertcli.files.texts import STANDARD_INPUT, Text, Texts
from bertcli.files.write.resumable_output import signature
from bertcli.loaded_model import LoadedModel
from bertcli.onnx.exactness import PREDICATES, SENTENCES
from bertcli.ranking import best_first
from bertcli.tasks.compute import rank
from bertcli.tasks.compute.encode import Plan, encode, plan
from bertcli.tasks.compute.keywords import Keywords, fused
from bertcli.tasks.compute.rank import DOCUMENT_PROMPTS
from bertcli.tasks.compute.run import results
from bertcli.tasks.compute.task import Record, length_limit
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.rank import RankOptions

logger = logging.getLogger("bertcli")
CHUNK = 256  # tokens of a part of a long passage: longer ones are about more than one thing
OVERLAP = 8  # neighboring parts share this part of their tokens
RERANKED = 50  # hits that a reranker reads
SPREADS = 3  # above the median: what hardly any pair of unrelated texts reaches
SPREAD = 1.4826  # the standard deviation of a normal distribution over its median absolute deviation


class Located(NamedTuple):
    """A part of a passage, with its file and lines; `passage` is that which it is a part of."""

    file: str
    line: int
    last: int
    text: str
    in_context: str
    passage: tuple[str, int]


class Hit(NamedTuple):
    """A part that was found for a query; `near`: its score is beyond chance."""

    query: str
    part: Located
    score: float
    near: bool

    @property
    def record(self) -> Record:
        """{query, file, line, score, text}."""
        part = self.part
        return {"query": self.query, "file": part.file, "line": part.line, "score": self.score, "text": part.text}


class Passages:
    """The passages of files with their vectors.

    index: a file that keeps the vectors; only files that have changed are encoded, and what is new is written to it.
    Errors: BertcliError for files without text, those that cannot be read, and a model without one vector a text.
    """

    def __init__(
        self,
        model: LoadedModel,
        files: Sequence[str],
        options: EncodeOptions,
        column: str | None = None,
        index: str | None = None,
    ) -> None:
        self._model, self._options, self._how = model, options, model.sentence.compared
        self._documents = _of_documents(model, options)
        if index is not None and STANDARD_INPUT in files:
            raise BertcliError("Standard input has no index: give files, or leave out --index.")
        made = Made(signature(model.name, model.files_read), self._settings())
        entries = {} if index is None else read_index(index, made)
        in_files = {file: passages_in(file, column) for file in files}
        if not any(in_files.values()):
            where = files[0] if len(files) == 1 else f"these {len(files)} files"
            raise BertcliError(f"There is no text in {where} to search.")
        digests = {file: file if index is None else digest_of(file, column) for file in files}
        new = {digests[file]: file for file in files if digests[file] not in entries}
        begun = time.monotonic()
        encoded = self._encoded({file: in_files[file] for file in new.values()})
        entries = _still_there(entries, digests) | {digest: encoded[file] for digest, file in new.items()}
        self._say(sum(len(encoded[file].spans) for file in new.values()), len(new), time.monotonic() - begun, index)
        if index is not None and new:
            write_index(index, made, entries, self._width)
        self.parts: list[Located] = []
        for file in files:
            self.parts += _located(file, in_files[file], entries[digests[file]], index)
        self.vectors = np.concatenate([entries[digests[file]].vectors for file in files])
        if self.vectors.shape[1] != self._width or not np.isfinite(self.vectors).all():
            raise BertcliError(f"{index} is damaged: delete it, and it is made anew.")
        self._keywords: Keywords | None = None

    @property
    def keywords(self) -> Keywords:
        """The words of the passages, which are counted when they are first asked for."""
        if self._keywords is None:
            self._keywords = Keywords([part.in_context for part in self.parts])
        return self._keywords

    def hits(
        self, queries: Sequence[str], top_k: int, hybrid: bool = False, reranker: LoadedModel | None = None
    ) -> Iterator[list[Hit]]:
        """The best passages for each query, best first; a note for a query that nothing is near to."""
        chance = self.chance()
        scores = similarities(
            encode(self._model, queries, _of_queries(self._model, self._options)), self.vectors, self._how
        )
        for query, similar in zip(queries, scores, strict=True):
            if similar.max() < chance:
                logger.info(
                    "nothing is near to %s: the best similarity is %.2f, and unrelated sentences reach %.2f by chance.",
                    quoted(query), similar.max(), chance,
                )  # fmt: skip
            ranked = fused(similar, self.keywords.bm25(query)) if hybrid else similar
            best = self._once(best_first(ranked), top_k if reranker is None else max(top_k, RERANKED))
            hits = [Hit(query, self.parts[i], float(ranked[i]), bool(similar[i] >= chance)) for i in best]
            yield (hits if reranker is None else _reranked(reranker, hits))[:top_k]

    def chance(self) -> float:
        """The score that unrelated texts reach by chance: the median of pairs + 3 spreads (1.4826 times the MAD).

        These are built-in sentences that share no part, and not the passages: in files about one thing most pairs of
        passages are related.
        """
        vectors = encode(self._model, SENTENCES, self._documents)
        scores = similarities(vectors, vectors, self._how)
        subject, predicate = np.divmod(np.arange(len(SENTENCES)), len(PREDICATES))
        unrelated = (subject[:, None] < subject) & (predicate[:, None] != predicate)
        pairs = scores[unrelated]
        median = float(np.median(pairs))
        return median + SPREADS * SPREAD * float(np.median(np.abs(pairs - median)))

    @property
    def _width(self) -> int:
        return Plan.make(self._model, self._documents).width

    def _settings(self) -> dict[str, Any]:
        """The settings that must be equal for all vectors of an index."""
        task = plan(self._model, self._chunked())
        return {**task.settings, "chunk": list(self._chunked().chunk_sizes)}

    def _chunked(self) -> EncodeOptions:
        """The options that make the passages' vectors."""
        size = length_limit(self._model, self._options.max_length)
        if self._options.max_length is None:
            size = min(size, CHUNK)
        return replace(self._documents, max_length=None, chunk=(size, size // OVERLAP))

    def _encoded(self, in_files: dict[str, list[PassageOfFile]]) -> dict[str, FileVectors]:
        """The vectors of all passages of some files."""
        owners = [(file, number) for file, passages in in_files.items() for number in range(len(passages))]
        texts = [
            Text(passage.in_context, place=f"{file}, line {passage.line}")
            for file, passages in in_files.items()
            for passage in passages
        ]
        spans: dict[str, list[tuple[int, int, int]]] = {file: [] for file in in_files}
        vectors: list[NDArray[Any]] = [np.empty((0, self._width), np.float32)]
        if texts:
            for block in results(plan(self._model, self._chunked()), Texts(texts, at_hand=True, count=len(texts))):
                vectors.append(np.asarray(block.vectors))
                for item in block.items:
                    file, number = owners[item.index]
                    # A chunk's characters count in the text with its headings.
                    start, end = (item.chunk.start, item.chunk.end) if item.chunk else (0, len(item.text.text))
                    spans[file].append((number, start, end))
        rows = np.concatenate(vectors)
        made, begin = {}, 0
        for file, of_file in spans.items():
            end = begin + len(of_file)
            path = file if file == STANDARD_INPUT else os.path.abspath(file)
            made[file] = FileVectors(path, np.array(of_file, np.int32).reshape(-1, 3), rows[begin:end])
            begin = end
        return made

    def _say(self, count: int, files: int, seconds: float, index: str | None) -> None:
        """Say how long encoding took, and what would save it."""
        if not count:
            return
        texts = "1 text" if count == 1 else f"{count:,} texts"
        of_files = "1 file" if files == 1 else f"{files:,} files"
        hint = "; --index FILE keeps the vectors for the next time" if index is None else ""
        logger.info("%s of %s encoded in %.1f s%s.", texts, of_files, seconds, hint)

    def _once(self, order: NDArray[np.intp], count: int) -> list[int]:
        """The best part of each of the first `count` passages."""
        chosen: dict[tuple[str, int], int] = {}
        for i in order.tolist():
            chosen.setdefault(self.parts[i].passage, i)
            if len(chosen) == count:
                break
        return [*chosen.values()]


def files_of(hits: Sequence[Hit], top_k: int) -> list[Record]:
    """Records {query, file, score} of the first `top_k` files that have a hit which is near, by their best one."""
    best: dict[str, Hit] = {}
    for hit in hits:
        if hit.near:
            best.setdefault(hit.part.file, hit)
    return [{"query": hit.query, "file": file, "score": hit.score} for file, hit in [*best.items()][:top_k]]


def _of_documents(model: LoadedModel, options: EncodeOptions) -> EncodeOptions:
    """The options of the passages' vectors: those given, but with the model's prompt for documents."""
    name = next((name for name in DOCUMENT_PROMPTS if name in model.sentence.prompts), None)
    return replace(options, prompt=None, prompt_name=name)


def _of_queries(model: LoadedModel, options: EncodeOptions) -> EncodeOptions:
    """The options of a query's vector: those given, with the model's prompt for queries where no other is."""
    own = model.sentence
    chosen = options.prompt is not None or options.prompt_name is not None
    if chosen or own.routed or "query" not in own.prompts:
        return options
    return replace(options, prompt_name="query")


def _still_there(entries: dict[str, FileVectors], digests: dict[str, str]) -> dict[str, FileVectors]:
    """Keep the entries of an index that are used now, or whose files exist; drop older states of a file."""
    used, paths = set(digests.values()), {os.path.abspath(file) for file in digests}
    return {
        digest: entry
        for digest, entry in entries.items()
        if digest in used or (entry.path not in paths and os.path.exists(entry.path))
    }


def _located(file: str, passages: list[PassageOfFile], entry: FileVectors, index: str | None) -> Iterator[Located]:
    """The parts of a file's passages. Errors: BertcliError for an index that does not fit the file."""
    for number, start, end in entry.spans.tolist():
        if not (0 <= number < len(passages) and 0 <= start <= end <= len(passages[number].in_context)):
            raise BertcliError(f"{index} is damaged: delete it, and it is made anew.")
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
        yield Located(file, line, last, text, in_context, (file, number))


def _reranked(reranker: LoadedModel, hits: list[Hit]) -> list[Hit]:
    """Hits in the order, and with the scores, of a reranker."""
    documents = [hit.part.in_context for hit in hits]
    options = RankOptions(documents)
    pairs = rank.pairs_of(hits[0].query, documents)
    records = [record for block in results(rank.plan(reranker, options), pairs) for record in block.records()]
    return [hits[record["corpus_id"]]._replace(score=record["score"]) for record in records]
