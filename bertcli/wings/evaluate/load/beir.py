"""Read a BEIR folder (queries, corpus, qrels) and TREC's qrels and runs; write a run."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from bertcli.errors import BertcliError, quoted
from bertcli.files.labelled.fields import read_number
from bertcli.files.labelled.rows import LabelledText, LeftOut
from bertcli.files.read.inputs import rows_in
from bertcli.files.read.line_reader import LineFile
from bertcli.files.read.row_columns import Field, RowColumns
from bertcli.files.texts import Text
from bertcli.wings.evaluate.load.labelled import Relevance
from bertcli.wings.evaluate.options import Evaluate
from bertcli.wings.evaluate.outcome import Outcome

OF_FOLDER = RowColumns(Field("text", ""), id=Field("_id", ""), whole=True)
# Formats of lines by their number of fields: BEIR's qrels, which may have a header, TREC's, and runs; and which fields
# are the query, the document and the number.
BEIR, TREC, RUN = 3, 4, 6
COLUMNS = {BEIR: (0, 1, 2), TREC: (0, 2, 3), RUN: (0, 2, 4)}
LONGEST_SHOWN = 300  # characters of a document


class Corpus:
    """The documents of corpus.jsonl. They are read again at each use, so that only their ids are in memory.

    ids: those of the documents that are used, in the file's order. rows: how many rows the file has. unused: the
    numbers of rows that cannot be read, or whose id stands in a later row, too; like BEIR's loader we use the last.
    Errors: BertcliError for such a row, unless rows may be left out.
    """

    def __init__(self, file: str, left_out: LeftOut) -> None:
        self.file = file
        last_row_of: dict[str, int] = {}
        first_row_of: dict[str, int] = {}  # of ids that stand in several rows
        self.unused: set[int] = set()
        self.rows = 0
        for index, row in enumerate(self._rows()):
            self.rows = index + 1
            if row.error:
                left_out.add(row.error)
                self.unused.add(index)
                continue
            id = str(row.id)
            if id in last_row_of:
                # Every line is a row, so the number of a row is that of its line.
                line = first_row_of.setdefault(id, last_row_of[id]) + 1
                left_out.add(f"{row.location}: the id {quoted(id)} stands in {file}, line {line}, too.")
                self.unused.add(last_row_of[id])
            last_row_of[id] = index
        if self.unused:
            last_row_of = dict(sorted(last_row_of.items(), key=lambda pair: pair[1]))
        self.ids = [*last_row_of]

    def _rows(self) -> Iterator[Text]:
        yield from rows_in([self.file], OF_FOLDER, keep_going=True)

    def documents(self) -> Iterator[Text]:
        """Each document, with its id: its title, if it has one, then its text, as in BEIR."""
        for index, row in enumerate(self._rows()):
            if index not in self.unused:
                yield Text(f"{row.label.get('title') or ''} {row.text}".strip(), None, row.location, row.id)

    def texts(self, ids: Collection[str]) -> dict[str, str]:
        """The texts of some documents."""
        return {str(document.id): document.text for document in self.documents() if document.id in ids}

    def add_texts(self, worst: Iterable[dict[str, Any]]) -> None:
        """Add the texts of documents, behind their ids, to the records of the worst queries."""
        entries = [(entry, key) for entry in worst for key in ("expected", "found")]
        texts = self.texts({entry[key] for entry, key in entries})
        for entry, key in entries:
            entry[key] = f"{entry[key]}: {texts.get(entry[key], '')[:LONGEST_SHOWN]}"


def read_folder(folder: str, options: Evaluate, left_out: LeftOut) -> tuple[list[LabelledText], Corpus]:
    """The queries of a folder, and its corpus."""
    corpus = Corpus(f"{folder}/corpus.jsonl", left_out)
    queries: dict[str, LabelledText] = {}
    for row in rows_in([f"{folder}/queries.jsonl"], OF_FOLDER, keep_going=True):
        if row.error:
            left_out.add(row.error)
            continue
        id = str(row.id)
        if id in queries:
            left_out.add(f"{row.location}: the id {quoted(id)} stands in {queries[id].text.location}, too.")
        fields = row.label
        group = None if options.by is None else str(fields.get(options.by, ""))
        if options.cluster is not None and fields.get(options.cluster) is None:
            raise BertcliError(f"{row.location}: there is no {quoted(options.cluster)} (--cluster).")
        cluster = None if options.cluster is None else str(fields[options.cluster])
        queries[id] = LabelledText(row._replace(id=None), group, cluster)
    return read_queries(f"{folder}/qrels/{options.split}.tsv", BEIR, options, left_out, queries, {*corpus.ids}), corpus


def read_queries(
    qrels: str,
    width: int,
    options: Evaluate,
    left_out: LeftOut,
    queries: Mapping[str, LabelledText] | None = None,
    documents: Collection[str] | None = None,
) -> list[LabelledText]:
    """The queries that are judged, each with its gains and with what a run found.

    queries, documents: those that are known, with the texts of queries; None: their ids are all that there is.
    """
    gains: dict[str, dict[str, float]] = {}
    seen: dict[tuple[str, str], str] = {}
    for location, query, document, gain in numbers_in(qrels, width, left_out):
        if queries is not None and query not in queries:
            left_out.add(f"{location}: queries.jsonl has no query {quoted(query)}.")
        elif documents is not None and document not in documents:
            left_out.add(f"{location}: corpus.jsonl has no document {quoted(document)}.")
        else:
            _put(gains, seen, location, query, document, gain, left_out)
    run: dict[str, dict[str, float]] = {}
    seen = {}
    for location, query, document, score in numbers_in(options.run, RUN, left_out) if options.run else ():
        _put(run, seen, location, query, document, score, left_out)
    rows = {query: LabelledText(Text(query, None, qrels)) if queries is None else queries[query] for query in gains}
    labelled = []
    for id, row in rows.items():
        relevance = Relevance(id, gains[id], run.get(id, {}))
        labelled.append(row._replace(text=row.text._replace(label=relevance)))
    return labelled


def _put(
    numbers: dict[str, dict[str, float]],
    seen: dict[tuple[str, str], str],
    location: str,
    query: str,
    document: str,
    number: float,
    left_out: LeftOut,
) -> None:
    """Add a document's number to a query's; a second number for the same document is an error, which names `seen`."""
    first = seen.setdefault((query, document), location)
    if first != location:
        left_out.add(f"{location}: the query {quoted(query)} and document {quoted(document)} stand in {first}, too.")
    numbers.setdefault(query, {})[document] = number


def numbers_in(file: str, width: int, left_out: LeftOut) -> Iterator[tuple[str, str, str, float]]:
    """The location, query, document and number of each line that can be used."""
    for i, line in enumerate(LineFile(file)):
        cells = line.text.split("\t" if width == BEIR else None)
        if not line.text.strip() or (i == 0 and width == BEIR and not _is_number(cells[-1])):
            continue  # the first line of BEIR's qrels may be a header
        try:
            if line.error or len(cells) != width:
                raise ValueError(f"{len(cells)} fields where there should be {width}.")
            query, document, value = (cells[column] for column in COLUMNS[width])
            yield line.location, query, document, read_number(value)
        except ValueError as error:
            left_out.add(line.error or f"{line.location}: {error}")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def run_of(outcome: Outcome) -> bytes:
    """Write a model's ranking as a run of TREC."""
    tag = "_".join(outcome.name.split())
    lines = []
    for query, order in outcome.orders.items():
        for rank, (id, score) in enumerate(order, 1):
            lines.append(f"{query} Q0 {id} {rank} {score:.9g} {tag}\n")
    return "".join(lines).encode()
