"""Evaluators of `retrieval` (search a corpus) and `rank` (rerank candidates): nDCG, MAP, MRR, recall, precision."""

import logging
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bertcli.errors import BertcliError
from bertcli.files.labelled.fields import NOTHING, FieldSpec, Parts, Row, read_number, read_text, read_texts
from bertcli.files.labelled.rows import WAY_ON, Flags
from bertcli.files.search import Best, open_vectors, similarities
from bertcli.files.texts import Text, Texts
from bertcli.model import Model
from bertcli.report.progress import counted
from bertcli.statistics import metrics
from bertcli.tasks.parts.made_alike import check_made_alike
from bertcli.tasks.registry import SENTENCE_SAMPLE
from bertcli.wings.evaluate.evaluators.evaluator import Evaluator, FigureSpec
from bertcli.wings.evaluate.evaluators.similarity import OF_VECTORS, Vectors, as_stored, signs, storages, vectors_of
from bertcli.wings.evaluate.load.beir import Corpus
from bertcli.wings.evaluate.load.labelled import Labelled, Relevance, Scores, texts_of
from bertcli.wings.evaluate.options import Evaluate
from bertcli.wings.evaluate.outcome import Outcome, VectorStorage, means_of

logger = logging.getLogger("bertcli")
OWN_ORDER = "the candidates' own order"
TOGETHER = 1024  # documents compared at a time


def in_order(scores: Scores) -> list[tuple[str, float]]:
    """Documents, the highest score first; of equal ones (in float32) that with the later id, as trec_eval does it."""
    return sorted(scores.items(), key=lambda pair: (np.float32(pair[1]), pair[0]), reverse=True)


def ranking_outcome(
    name: str,
    data: Labelled,
    scores: Sequence[Scores],
    usable: Flags,
    options: Evaluate,
    storage: VectorStorage | None = None,
) -> Outcome:
    """Make the outcome from the scores of each query's documents; expected and found are ids of documents."""
    cutoffs = options.ranks()
    gains = [row.label.gains for row in data.rows]
    orders: dict[str, list[tuple[str, float]]] = {}
    found: list[list[float]] = []
    first: list[str] = []
    left_out = 0
    for row, of_query in zip(data.rows, scores, strict=True):
        order = in_order(of_query)
        if data.corpus and not options.identical_ids:
            # Of a folder ids of queries and documents are of one kind: the query itself is no answer to it.
            others = [(id, score) for id, score in order if id != row.label.id]
            left_out += len(order) - len(others)
            order = others
        orders[row.label.id] = order
        found.append([row.label.gains.get(id, 0) for id, _ in order])
        first.append(order[0][0] if order else "")
    if left_out:
        note = "%s: %d documents have their query's id and are left out, as in BEIR and mteb."
        logger.info(note, name, left_out)

    figures = metrics.ranking(found, [[*some.values()] for some in gains], cutoffs)
    main = f"ndcg@{10 if 10 in cutoffs else cutoffs[-1]}"
    return Outcome(
        name=name,
        **means_of({main: figures[main], **figures}),
        usable=usable,
        badness=1 - figures[main],
        expected=[max(some, key=some.__getitem__) for some in gains],
        found=first,
        storage=storage,
        orders=orders,
    )


# ----------------------------------------------------------------------------------------------------------- retrieval


class _Search(NamedTuple):
    """A search for the queries' best documents among vectors of one storage."""

    name: str
    storage: VectorStorage
    queries: Vectors
    best: Best


def retrieve(model: Model, data: Labelled, options: Evaluate) -> list[Outcome]:
    """Find the documents of the corpus that are most like each query, for each way to store vectors.

    The corpus is read once, in blocks, of which nothing is kept but the best documents.
    """
    corpus = data.corpus
    if not isinstance(corpus, Corpus):
        raise BertcliError(
            f"{data.file} has no texts, and a model needs them: give the folder with corpus.jsonl and queries.jsonl."
        )
    how = model.kind.compared
    queries, usable = vectors_of(model, data.rows, options, prompt_name=model.kind.prompt_name("query"))
    width = queries.shape[1]
    depth = options.ranks()[-1] + 1  # one more than is asked for, since the query itself may be among them
    tie_order = _later_ids_first(corpus.ids)

    searches = []
    for name, storage in storages(model, width, options):
        # Binary vectors are compared with binary queries, all others with queries in float32.
        of_queries = storage if storage.dtype == "binary" else storage._replace(dtype="float32")
        best = Best(len(data.rows), depth, tie_order)
        searches.append(_Search(name, storage, as_stored(queries, of_queries), best))
    for block in _blocks(model, corpus, width, options):
        for search in searches:
            search.best.add(similarities(search.queries, as_stored(block, search.storage), how))

    outcomes = []
    for search in searches:
        numbers, values, *_ = search.best.found()
        scores: list[dict[str, float]] = []
        for of_row, some in zip(numbers, values, strict=True):
            ids = [corpus.ids[number] for number in of_row]
            scores.append(dict(zip(ids, some, strict=True)))
        outcomes.append(ranking_outcome(search.name, data, scores, usable, options, search.storage))
    return outcomes


def _later_ids_first(ids: Sequence[str]) -> NDArray[np.intp]:
    """The rank of each id, the last id first: of equal documents trec_eval takes the one with the later id."""
    places = np.empty(len(ids), np.intp)
    places[sorted(range(len(ids)), key=ids.__getitem__, reverse=True)] = np.arange(len(ids))
    return places


def _blocks(model: Model, corpus: Corpus, width: int, options: Evaluate) -> Iterator[Vectors]:
    """The vectors of the corpus, in order; zeros for a document that could not be used."""
    if options.vectors is not None:
        yield from _given(options.vectors, model, corpus, width)
        return
    documents = counted(corpus.documents(), "evaluate", "documents", len(corpus.ids))
    texts = Texts(documents, at_hand=True, way_on=WAY_ON)
    done = 0
    prompt_name = model.kind.prompt_name("document")
    # The default prompt by its words: a note that there is none was said with the queries.
    prompt = model.kind.prompt if prompt_name is None else None
    for block in model.encode_blocks(texts, **options.reading_options, prompt=prompt, prompt_name=prompt_name):
        vectors = np.zeros((len(block.items) + len(block.failures), width), np.float32)
        vectors[[item.index - done for item in block.items]] = block.vectors
        done += len(vectors)
        for begin in range(0, len(vectors), TOGETHER):
            yield vectors[begin : begin + TOGETHER]


def _given(file: str, model: Model, corpus: Corpus, width: int) -> Iterator[Vectors]:
    """Stored vectors of a corpus, one of each row. Errors: BertcliError for those of another model or corpus."""
    stored = open_vectors(file)
    check_made_alike(model, stored)
    read = 0
    for block in stored.blocks(TOGETHER):
        block = signs(block, width) if block.dtype == np.uint8 else block
        if block.shape[1] != width:
            raise BertcliError(f"{file} has vectors of {block.shape[1]} numbers, but this model gives {width}.")
        used = [number not in corpus.unused for number in range(read, read + len(block))]
        read += len(block)
        yield block[used].astype(np.float32) if corpus.unused else block.astype(np.float32)
    if read != corpus.rows:
        raise BertcliError(f"{file} has {read:,} vectors, but the corpus {corpus.rows:,} documents: encode it again.")


# ---------------------------------------------------------------------------------------------------------------- rank


class _Candidate(NamedTuple):
    """A document to be scored for a query."""

    pair: Text
    query: int
    id: str


def rerank(model: Model, data: Labelled, options: Evaluate) -> list[Outcome]:
    """Rerank the candidates of each query, with a cross-encoder or late interaction."""
    relevance = [row.label for row in data.rows]
    texts = data.corpus.texts({id for one in relevance for id in one.found}) if data.corpus else {}
    candidates: list[_Candidate] = []
    for i, row in enumerate(data.rows):
        documents = row.label.documents or {id: texts.get(id) for id in row.label.found}
        for id, document in documents.items():
            if document is not None:
                candidates.append(_Candidate(Text(row.text, document, row.location), i, id))
    candidates.sort(key=lambda candidate: candidate.pair.text)  # `rank` needs the documents of a query side by side

    pairs: Any = texts_of([candidate.pair for candidate in candidates])  # queries and documents in one
    scores: list[dict[str, float]] = [{} for _ in data.rows]
    usable = np.ones(len(scores), bool)
    for record in model.rank(pairs, documents=(), **options.reading_options):
        candidate = candidates[record["corpus_id"]]
        usable[candidate.query] &= "error" not in record
        scores[candidate.query][candidate.id] = record.get("score", 0.0)
    return [ranking_outcome(model.name, data, scores, usable, options)]


def found_before(data: Labelled, options: Evaluate) -> list[Outcome]:
    """Evaluate a run, or the candidates in the order that they have before they are ranked."""
    scores = [row.label.found for row in data.rows]
    if data.task == "rank" and not any(scores):
        raise BertcliError("There are no candidates to rerank: give a run (--run), such as BM25's.")
    name = OWN_ORDER if data.task == "rank" else options.run
    return [ranking_outcome(name, data, scores, np.ones(len(scores), bool), options)] if name else []


def read_numbers(value: Any) -> list[float]:
    """A list of numbers."""
    return [read_number(each) for each in (value if isinstance(value, list) else [value])]


def parts(row: Row) -> Parts:
    """A row's query, labelled with its documents and their gains."""
    row.check_lengths()
    # Documents without ids get numbers, which a text comparison sorts as they stand.
    ids = [f"{i:06d}" for i in range(len(row.second))]
    gains = dict(zip(ids, row.label, strict=True))
    documents = dict(zip(ids, row.second, strict=True))
    own_order = {id: -int(id) for id in ids}  # as scores: the first document has the highest
    return row.text, None, Relevance(row.location, gains, own_order, documents)


FIGURES = {
    "ndcg@K": FigureSpec("gain of the first K documents, discounted by rank, over that of the best order"),
    "map@K": FigureSpec("mean average precision of the first K documents"),
    "mrr@K": FigureSpec("mean of 1 / rank of the first relevant document; 0 beyond K"),
    "recall@K": FigureSpec("share of a query's relevant documents among the first K"),
    "precision@K": FigureSpec("share of the first K documents that are relevant"),
}
EVALUATORS = {
    "retrieval": Evaluator(
        unit="queries",
        # It has texts, but in no table.
        fields=(FieldSpec((), read_text), NOTHING, NOTHING),
        figures=FIGURES,
        evaluate=retrieve,
        options=(*OF_VECTORS, "run", "vectors", "k"),
        before=found_before,
        sample=SENTENCE_SAMPLE,
    ),
    "rank": Evaluator(
        unit="queries",
        fields=(
            FieldSpec(("query",), read_text),
            FieldSpec(("documents", "passages"), read_texts),
            FieldSpec(("labels", "relevance"), read_numbers),
        ),
        figures=FIGURES,
        evaluate=rerank,
        place=1,
        parts=parts,
        options=("run", "k"),
        before=found_before,
    ),
}
