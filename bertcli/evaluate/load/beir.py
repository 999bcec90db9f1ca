"""A folder as BEIR has it, and TREC's qrels and runs."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any

from bertcli.errors import BertcliError, shown
from bertcli.evaluate.load.tables import LeftOut, Relevance, number
from bertcli.evaluate.options import Evaluate
from bertcli.evaluate.outcome import Outcome
from bertcli.files.inputs import rows_in
from bertcli.files.lines import LineFile
from bertcli.files.rows import Field, Wanted
from bertcli.files.texts import Text

OF_FOLDER = Wanted(Field("text", ""), id=Field("_id", ""), whole=True)
# Which fields of a line are a query, a document and a number, by how many fields it has; BEIR's may have a header.
BEIR, TREC, RUN = 3, 4, 6
PLACES = {BEIR: (0, 1, 2), TREC: (0, 2, 3), RUN: (0, 2, 4)}
LONGEST_SHOWN = 300  # characters of a document


class Corpus:
    """The documents of corpus.jsonl: read anew whenever they are needed, so that only their ids are in memory."""

    def __init__(self, file: str) -> None:
        self.file = file

    def documents(self) -> Iterator[Text]:
        """Each document, with its id: its title, if it has one, then its text, as in BEIR."""
        for row in rows_in([self.file], OF_FOLDER):
            yield Text(f"{row.label.get('title') or ''} {row.text}".strip(), None, row.place, row.id)

    @cached_property
    def ids(self) -> list[str]:
        return [str(document.id) for document in self.documents()]

    def texts(self, ids: Collection[str]) -> dict[str, str]:
        """The texts of some documents."""
        return {str(document.id): document.text for document in self.documents() if document.id in ids}

    def tell(self, worst: Iterable[dict[str, Any]]) -> None:
        """Put the texts of documents behind their ids."""
        entries = [(entry, key) for entry in worst for key in ("expected", "found")]
        texts = self.texts({entry[key] for entry, key in entries})
        for entry, key in entries:
            entry[key] = f"{entry[key]}: {texts.get(entry[key], '')[:LONGEST_SHOWN]}"


def read_folder(folder: str, wanted: Evaluate, left_out: LeftOut) -> tuple[list[Text], Corpus]:
    """The queries of a folder, and its corpus."""
    corpus, queries = Corpus(f"{folder}/corpus.jsonl"), {}
    for row in rows_in([f"{folder}/queries.jsonl"], OF_FOLDER, keep_going=True):
        if row.error:
            left_out.add(row.error)
        else:
            queries[str(row.id)] = row._replace(id=None if wanted.by is None else str(row.label.get(wanted.by, "")))
    return read_queries(f"{folder}/qrels/{wanted.split}.tsv", BEIR, wanted, left_out, queries, {*corpus.ids}), corpus


def read_queries(
    qrels: str,
    width: int,
    wanted: Evaluate,
    left_out: LeftOut,
    queries: Mapping[str, Text] | None = None,
    documents: Collection[str] | None = None,
) -> list[Text]:
    """The queries that are judged, each with its gains and with what a run found.

    queries, documents: those that are known, with the texts of queries; None: their ids are all that there is.
    """
    gains: dict[str, dict[str, float]] = {}
    for place, query, document, gain in numbers_in(qrels, width, left_out):
        if queries is not None and query not in queries:
            left_out.add(f"{place}: queries.jsonl has no query {shown(query)}.")
        elif documents is not None and document not in documents:
            left_out.add(f"{place}: corpus.jsonl has no document {shown(document)}.")
        else:
            gains.setdefault(query, {})[document] = gain
    run: dict[str, dict[str, float]] = {}
    for _, query, document, score in numbers_in(wanted.run, RUN, left_out) if wanted.run else ():
        run.setdefault(query, {})[document] = score
    rows = {query: Text(query, None, qrels) if queries is None else queries[query] for query in gains}
    return [row._replace(label=Relevance(id, gains[id], run.get(id, {}))) for id, row in rows.items()]


def numbers_in(file: str, width: int, left_out: LeftOut) -> Iterator[tuple[str, str, str, float]]:
    """The place, query, document and number of each line that can be used."""
    for i, line in enumerate(LineFile(file)):
        cells = line.text.split("\t" if width == BEIR else None)
        header = i == 0 and width == BEIR and not cells[-1].strip().isdecimal()
        if header or not line.text.strip():
            continue
        try:
            if line.error or len(cells) != width:
                raise ValueError(f"{len(cells)} fields where there should be {width}.")
            query, document, value = (cells[place] for place in PLACES[width])
            yield line.place, query, document, number(value)
        except ValueError as error:
            left_out.add(line.error or f"{line.place}: {error}")


def run_of(outcome: Outcome) -> bytes:
    """What a model found, as a run of TREC. Errors: BertcliError for what is no ranking."""
    if not outcome.orders:
        raise BertcliError("A run (.trec) is written of retrieval and rank only: give another ending.")
    tag = "_".join(outcome.name.split())
    lines = [
        f"{query} Q0 {id} {rank} {score:.9g} {tag}\n"
        for query, order in outcome.orders.items()
        for rank, (id, score) in enumerate(order, 1)
    ]
    return "".join(lines).encode()
