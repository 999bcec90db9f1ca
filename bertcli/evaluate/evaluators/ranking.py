"""retrieval and rank: whether what queries ask for comes first among all documents, or among some that are reranked."""

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bertcli.errors import BertcliError
from bertcli.evaluate import metrics
from bertcli.evaluate.evaluators.similarity import Vectors, as_stored, signs, vectors_of, ways
from bertcli.evaluate.load.beir import Corpus
from bertcli.evaluate.load.tables import Flags, Labelled, Scores, texts_of
from bertcli.evaluate.options import Evaluate
from bertcli.evaluate.outcome import Outcome, Way, means_of
from bertcli.files.search import Best, open_vectors, similarities
from bertcli.files.texts import Text, Texts
from bertcli.model import Model
from bertcli.report.progress import counted
from bertcli.tasks.compute.search import check_made_alike

OWN = "the candidates' own order"
QUERY, DOCUMENT = ("query",), ("document", "passage", "corpus")  # prompts, as sentence-transformers names them
TOGETHER = 1024  # documents compared at a time


def in_order(scores: Scores) -> list[tuple[str, float]]:
    """Documents, the highest score first; of equal ones (in float32) that with the later id, as trec_eval does it."""
    return sorted(scores.items(), key=lambda pair: (np.float32(pair[1]), pair[0]), reverse=True)


def ranked(
    name: str, data: Labelled, scores: Sequence[Scores], usable: Flags, wanted: Evaluate, way: Way | None = None
) -> Outcome:
    """From what each query's documents score; expected and found are ids of documents."""
    cutoffs, gains = wanted.ranks("retrieval"), [row.label.gains for row in data.rows]
    orders = {row.label.id: in_order(some) for row, some in zip(data.rows, scores, strict=True)}
    found = [[some.get(id, 0) for id, _ in order] for some, order in zip(gains, orders.values(), strict=True)]
    every = metrics.ranking(found, [[*some.values()] for some in gains], cutoffs)
    main = f"ndcg@{10 if 10 in cutoffs else cutoffs[-1]}"
    made = means_of({main: every[main], **every})
    expected = [max(some, key=some.__getitem__) for some in gains]
    first = [order[0][0] if order else "" for order in orders.values()]
    return Outcome(name, *made, usable, 1 - every[main], expected, first, way=way, orders=orders)


# ----------------------------------------------------------------------------------------------------------- retrieval


def retrieve(model: Model, data: Labelled, wanted: Evaluate) -> list[Outcome]:
    """The documents of the corpus that are most like the query, never the query itself; for each way to store vectors.

    The corpus is read once, in blocks, of which nothing is kept but the best documents.
    """
    rows, corpus, how = data.rows, data.corpus, model.sentence.compared
    if not isinstance(corpus, Corpus):
        raise BertcliError(f"{data.file} has no texts, so a model cannot be judged on it: give its folder.")
    queries, usable = vectors_of(model, rows, wanted, prompt_name=_prompt(model, QUERY))
    width = queries.shape[1]
    later = np.empty(len(corpus.ids), np.intp)  # the place of each id among all, the last first: what decides ties
    later[sorted(range(len(later)), key=corpus.ids.__getitem__, reverse=True)] = np.arange(len(later))
    depth = wanted.ranks("retrieval")[-1] + 1  # one more than is asked for, since the query itself may be among them
    every = []
    for name, way in ways(model, width, wanted):
        side = as_stored(queries, way if way.dtype == "binary" else way._replace(dtype="float32"))
        every.append((name, way, side, Best(len(rows), depth, later)))
    for block in _blocks(model, corpus, width, wanted):
        for _, way, side, best in every:
            best.add(similarities(side, as_stored(block, way), how))
    outcomes = []
    for name, way, _, best in every:
        scores = [
            {corpus.ids[n]: score for n, score in zip(numbers, some, strict=True) if corpus.ids[n] != row.label.id}
            for row, numbers, some in zip(rows, *best.found()[:2], strict=True)
        ]
        outcomes.append(ranked(name, data, scores, usable, wanted, way))
    return outcomes


def _prompt(model: Model, names: Sequence[str]) -> str | None:
    return next((name for name in names if name in model.sentence.prompts), None)


def _blocks(model: Model, corpus: Corpus, width: int, wanted: Evaluate) -> Iterator[Vectors]:
    """The vectors of the corpus, in order; zeros for a document that could not be used."""
    if wanted.vectors is not None:
        yield from _given(wanted.vectors, model, corpus, width)
        return
    texts = Texts(counted(corpus.documents(), "evaluate", "documents", len(corpus.ids)), at_hand=True)
    done = 0
    for block in model.encode_blocks(texts, **wanted.doing, prompt_name=_prompt(model, DOCUMENT)):
        some = np.zeros((len(block.items) + len(block.failures), width), np.float32)
        some[[item.index - done for item in block.items]] = block.vectors
        done += len(some)
        yield from (some[begin : begin + TOGETHER] for begin in range(0, len(some), TOGETHER))


def _given(file: str, model: Model, corpus: Corpus, width: int) -> Iterator[Vectors]:
    """Stored vectors of a corpus, one of each row. Errors: BertcliError for those of another model or corpus."""
    stored = open_vectors(file)
    check_made_alike(model, stored)
    read = 0
    for block in stored.blocks(TOGETHER):
        block = signs(block, width) if block.dtype == np.uint8 else block
        if block.shape[1] != width:
            raise BertcliError(f"{file} has vectors of {block.shape[1]} numbers, but this model gives {width}.")
        used = [number not in corpus.superseded for number in range(read, read + len(block))]
        read += len(block)
        yield block[used].astype(np.float32) if corpus.superseded else block.astype(np.float32)
    if read != corpus.rows:
        raise BertcliError(f"{file} has {read:,} vectors, but the corpus {corpus.rows:,} documents: encode it again.")


# ---------------------------------------------------------------------------------------------------------------- rank


def rerank(model: Model, data: Labelled, wanted: Evaluate) -> list[Outcome]:
    """The scores that a cross-encoder or late interaction gives what was found."""
    relevance = [row.label for row in data.rows]
    texts = data.corpus.texts({id for one in relevance for id in one.found}) if data.corpus else {}
    pairs = [
        (Text(row.text, document, row.place), i, id)
        for i, row in enumerate(data.rows)
        for id, document in (row.label.documents or {id: texts.get(id) for id in row.label.found}).items()
        if document is not None
    ]
    pairs.sort(key=lambda pair: pair[0].text)  # those of one text stand together, as `rank` wants it
    asked: Any = texts_of([text for text, *_ in pairs])  # texts and documents in one
    scores: list[dict[str, float]] = [{} for _ in data.rows]
    usable = np.ones(len(scores), bool)
    for record in model.rank(asked, documents=(), **wanted.doing):
        _, i, id = pairs[record["corpus_id"]]
        usable[i] &= "error" not in record
        scores[i][id] = record.get("score", 0.0)
    return [ranked(model.name, data, scores, usable, wanted)]


def found_before(data: Labelled, wanted: Evaluate) -> list[Outcome]:
    """What a run found, or the candidates in the order that they have before they are ranked."""
    every = [row.label.found for row in data.rows]
    if data.task == "rank" and not any(every):
        raise BertcliError("Which documents are to be ranked? Give a run with candidates (--run), such as BM25's.")
    name = OWN if data.task == "rank" else wanted.run
    return [ranked(name, data, every, np.ones(len(every), bool), wanted)] if name else []
