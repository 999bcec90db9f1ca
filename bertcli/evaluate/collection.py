"""A folder as BEIR has it, TREC's qrels and runs, and the documents nearest to queries in one pass over a corpus."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError, shown
from bertcli.evaluate.data import LeftOut, Row, number, objects
from bertcli.evaluate.options import Evaluate
from bertcli.evaluate.similarity import Vectors, as_stored, stored, vectors_of
from bertcli.files.lines import LineFile
from bertcli.files.search import open_vectors
from bertcli.files.texts import Text, Texts
from bertcli.model import Model
from bertcli.report.progress import counted

Scores = Mapping[str, float]
QUERY, DOCUMENT = ("query",), ("document", "passage", "corpus")  # prompts, as sentence-transformers names them
TOGETHER = 4096  # documents compared at a time
LONGEST_SHOWN = 300  # characters of a document


class Corpus:
    """The documents of corpus.jsonl: read anew whenever they are needed, so that only their ids are in memory."""

    def __init__(self, file: str) -> None:
        self.file = file

    def documents(self) -> Iterator[tuple[str, str, str]]:
        """The place, id and text of each: its title, if it has one, then its text, as in BEIR."""
        for place, value in objects(self.file, LeftOut(False)):
            if not isinstance(value.get("_id"), str) or not isinstance(value.get("text"), str):
                raise BertcliError(f"{place}: a document needs an _id and a text, both texts.")
            yield place, value["_id"], f"{value.get('title') or ''} {value['text']}".strip()

    @cached_property
    def ids(self) -> list[str]:
        return [id for _, id, _ in self.documents()]

    def texts(self, ids: Collection[str]) -> dict[str, str]:
        """The texts of some documents."""
        return {id: text for _, id, text in self.documents() if id in ids}

    def tell(self, worst: Iterable[dict[str, Any]]) -> None:
        """Put the texts of documents behind their ids."""
        entries = [(entry, key) for entry in worst for key in ("expected", "found")]
        texts = self.texts({entry[key] for entry, key in entries})
        for entry, key in entries:
            entry[key] = f"{entry[key]}: {texts.get(entry[key], '')[:LONGEST_SHOWN]}"


# ------------------------------------------------------------------------------------------------------------- reading


class Columns(NamedTuple):
    """Where lines have a query, a document and a number, of how many fields; `header`: after a first line of names."""

    query: int
    document: int
    number: int
    width: int
    header: bool = False


BEIR, TREC, RUN = Columns(0, 1, 2, 3, header=True), Columns(0, 2, 3, 4), Columns(0, 2, 4, 6)


def read_folder(folder: str, wanted: Evaluate, left_out: LeftOut) -> tuple[Corpus, list[Row]]:
    """The corpus of a folder, and the queries that have a relevant document, each with the gains of its documents."""
    corpus = Corpus(f"{folder}/corpus.jsonl")
    known, queries = {*corpus.ids}, {}
    for place, value in objects(f"{folder}/queries.jsonl", left_out):
        if isinstance(value.get("_id"), str) and isinstance(value.get("text"), str):
            queries[value["_id"]] = (place, value["text"], value.get(wanted.by or "", ""))
        else:
            left_out.add(f"{place}: a query needs an _id and a text, both texts.")
    gains: dict[str, dict[str, float]] = {}
    for place, query, document, gain in numbers_in(f"{folder}/qrels/{wanted.split}.tsv", BEIR, left_out):
        if query not in queries:
            left_out.add(f"{place}: queries.jsonl has no query {shown(query)}.")
        elif document not in known:
            left_out.add(f"{place}: corpus.jsonl has no document {shown(document)}.")
        else:
            gains.setdefault(query, {})[document] = gain
    rows = []
    for id, of_query in gains.items():
        place, text, group = queries[id]
        rows.append(Row(place, (id, of_query, text), None if wanted.by is None else str(group)))
    return corpus, relevant(rows, left_out)


def read_judgements(file: str, left_out: LeftOut) -> list[Row]:
    """The queries of TREC's qrels, whose texts are not known."""
    rows: dict[str, Row] = {}
    for place, query, document, gain in numbers_in(file, TREC, left_out):
        rows.setdefault(query, Row(place, (query, {}, query))).values[1][document] = gain
    return relevant(rows.values(), left_out)


def relevant(rows: Iterable[Row], left_out: LeftOut) -> list[Row]:
    """The queries with a relevant document; others are counted as left out."""
    kept = []
    for row in rows:
        if max(row.values[1].values(), default=0) > 0:
            kept.append(row)
        else:
            left_out.skip(f"{row.place}: the query {shown(row.values[0])} has no relevant document.")
    return kept


def read_run(file: str, left_out: LeftOut) -> dict[str, dict[str, float]]:
    """Of each query the scores of documents."""
    found: dict[str, dict[str, float]] = {}
    for _, query, document, score in numbers_in(file, RUN, left_out):
        found.setdefault(query, {})[document] = score
    return found


def numbers_in(file: str, columns: Columns, left_out: LeftOut) -> Iterator[tuple[str, str, str, float]]:
    """The place, query, document and number of each line that can be used."""
    for i, line in enumerate(LineFile(file)):
        cells = line.text.split("\t" if columns.header else None)
        if (i == 0 and columns.header) or not line.text.strip():
            continue
        try:
            if line.error or len(cells) != columns.width:
                why = f"{line.place}: {len(cells)} fields where there should be {columns.width}."
                raise BertcliError(line.error or why)
            gain = number(line.place, cells[columns.number])
        except BertcliError as error:
            left_out.add(str(error))
            continue
        yield line.place, cells[columns.query], cells[columns.document], gain


def run_lines(ids: Sequence[str], found: Iterable[Sequence[tuple[str, float]]], name: str) -> bytes:
    """A run as TREC has it."""
    tag = "_".join(name.split())
    lines = [
        f"{query} Q0 {id} {rank} {score:.9g} {tag}\n"
        for query, some in zip(ids, found, strict=True)
        for rank, (id, score) in enumerate(some, 1)
    ]
    return "".join(lines).encode()


# ------------------------------------------------------------------------------------------------- nearest documents


class Nearest:
    """The `depth` best documents of each query so far, best first: scores and numbers [query, depth]."""

    def __init__(self, queries: int, depth: int, later: NDArray[np.intp]) -> None:
        self.scores = np.full((queries, depth), -np.inf, np.float32)
        self.numbers = np.full((queries, depth), -1)
        self._later = later  # the place of each document's id among all, the last id first: what decides ties

    def add(self, scores: NDArray[np.float32], first: int) -> None:
        """Take up documents numbered from `first`, with their scores [query, document]."""
        for query in np.flatnonzero((scores >= self.scores[:, -1:]).any(axis=1)).tolist():
            (new,) = np.nonzero(scores[query] >= self.scores[query, -1])
            every = np.concatenate([self.scores[query], scores[query, new]])
            numbers = np.concatenate([self.numbers[query], first + new])
            best = np.lexsort((self._later[numbers], -every))[: self.scores.shape[1]]
            self.scores[query], self.numbers[query] = every[best], numbers[best]


def best_documents(
    model: Model, queries: Sequence[tuple[str, str]], corpus: Corpus, depth: int, wanted: Evaluate
) -> Iterator[tuple[str, dict[str, Any], list[Scores | None]]]:
    """For each way to store vectors its name, and of each query the scores of its best `depth` documents and one more.

    The corpus is read once, in blocks, of which nothing is kept but the best documents.
    """
    ids = corpus.ids
    order = _later(ids)
    asked = vectors_of(model, queries, wanted, **_prompt(model, QUERY))
    ok = [bool(np.isfinite(row).all()) for row in asked]
    ways = list(stored(model.name, asked.shape[1], wanted))
    nearest = [Nearest(len(queries), depth + 1, order) for _ in ways]
    sides = [
        unit(
            as_stored(
                np.nan_to_num(asked), how["truncate_dim"], how["dtype"] if how["dtype"] == "binary" else "float32"
            )
        )
        for _, how in ways
    ]
    first = 0
    for block in _blocks(model, corpus, asked.shape[1], wanted):
        for (_, how), best, side in zip(ways, nearest, sides, strict=True):
            documents = unit(as_stored(block, how["truncate_dim"], how["dtype"]))
            best.add(side @ documents.T, first)
        first += len(block)
    for (name, how), best in zip(ways, nearest, strict=True):
        pairs = (zip(*rows, strict=True) for rows in zip(best.numbers.tolist(), best.scores.tolist(), strict=True))
        found = [{ids[i]: score for i, score in some if i >= 0} for some in pairs]
        yield name, how, [some if fine else None for some, fine in zip(found, ok, strict=True)]


def _later(ids: Sequence[str]) -> NDArray[np.intp]:
    places = np.empty(len(ids), np.intp)
    places[sorted(range(len(ids)), key=ids.__getitem__, reverse=True)] = np.arange(len(ids))
    return places


def unit(vectors: Vectors) -> NDArray[np.float32]:
    """x / |x| of every row in float32; a zero vector stays zero."""
    lengths = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths > 0, lengths, 1), np.float32)


def _prompt(model: Model, names: Sequence[str]) -> dict[str, Any]:
    name = next((name for name in names if name in model.sentence.prompts), None)
    return {} if name is None else {"prompt_name": name}


def _blocks(model: Model, corpus: Corpus, width: int, wanted: Evaluate) -> Iterator[Vectors]:
    """The vectors of the corpus, in order; zeros for a document that could not be used."""
    if wanted.vectors is not None:
        yield from _given(wanted.vectors, len(corpus.ids), width)
        return
    rows = (Text(text, None, place) for place, _, text in corpus.documents())
    texts = Texts(counted(rows, "evaluate", "documents", len(corpus.ids)), at_hand=True)
    held: list[Vectors] = []
    done = 0
    for block in model.encode_blocks(texts, **wanted.doing, **_prompt(model, DOCUMENT)):
        some = np.zeros((len(block.items) + len(block.failures), width), np.float32)
        some[[item.index - done for item in block.items]] = block.vectors
        done += len(some)
        held.append(some)
        if sum(map(len, held)) >= TOGETHER:
            yield np.concatenate(held)
            held = []
    if held:
        yield np.concatenate(held)


def _given(file: str, count: int, width: int) -> Iterator[Vectors]:
    """Stored vectors of a corpus of so many documents. Errors: BertcliError where they are not of this corpus."""
    read = 0
    for block in open_vectors(file).blocks(TOGETHER):
        if block.dtype == np.uint8:
            block = 2 * np.unpackbits(block, axis=1, count=width).astype(np.int8) - 1
        if block.shape[1] != width:
            raise BertcliError(f"{file} has vectors of {block.shape[1]} numbers, but this model gives {width}.")
        read += len(block)
        yield block.astype(np.float32)
    if read != count:
        raise BertcliError(f"{file} has {read:,} vectors, but the corpus {count:,} documents: encode it again.")
