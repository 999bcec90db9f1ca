"""retrieval and rank: whether what queries ask for comes first among all documents, or among some that are reranked."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bertcli.errors import BertcliError
from bertcli.evaluate import metrics
from bertcli.evaluate.collection import Corpus, Scores, best_documents, read_run, run_lines
from bertcli.evaluate.data import Item, Labelled, Row, number, text
from bertcli.evaluate.metrics import Figures, Numbers
from bertcli.evaluate.options import Evaluate
from bertcli.evaluate.outcome import Curve, Judged, Outcome, Task, listed, texts_of
from bertcli.lean import lean_dataclass
from bertcli.model import Model

OWN = "the candidates' own order"


class Relevance(NamedTuple):
    """What is known of a query: its id, the gain of each judged document, the texts of its candidates (rank)."""

    id: str
    gains: Mapping[str, float]
    documents: Mapping[str, str] = {}


@lean_dataclass
class Ranked(Outcome):
    """Figures of each query [query, figure], and its documents with their scores, best first [query]."""

    unit: ClassVar[str] = "queries"
    values: Numbers
    relevance: Any
    found: Any
    names: Sequence[str]

    @classmethod
    def of(cls, items: Sequence[Item], scores: Sequence[Scores | None], cutoffs: Sequence[int]) -> "Ranked":
        """From what each query's documents score; None: the query could not be used."""
        found = [in_order(some or {}) for some in scores]
        every = [
            metrics.ranking([item.truth.gains.get(id, 0) for id, _ in order], [*item.truth.gains.values()], cutoffs)
            for item, order in zip(items, found, strict=True)
        ]
        main = "ndcg@10" if 10 in cutoffs else f"ndcg@{cutoffs[-1]}"
        names = sorted(every[0], key=lambda name: name != main)
        values = np.array([[figures[name] for name in names] for figures in every])
        ok = np.array([some is not None for some in scores])
        return cls(ok, values, listed([item.truth for item in items]), listed(found), names)

    def figures(self, counts: Numbers) -> Figures:
        means = metrics.ratio(counts @ self.values, counts.sum(axis=1, keepdims=True))
        return dict(zip(self.names, means.T, strict=True))

    @property
    def curve(self) -> Curve:
        """The means at each of the ranks that were asked for."""
        means = dict(zip(self.names, self.values.mean(axis=0).tolist(), strict=True))
        ranks = sorted(int(name.partition("@")[2]) for name in self.names if name.startswith("recall@"))
        points = [(means[f"recall@{k}"], means[f"precision@{k}"]) for k in ranks]
        return Curve(f"precision over recall at {', '.join(map(str, ranks))}", "recall", "precision", points)

    @property
    def losses(self) -> Numbers:
        return np.asarray(1 - self.values[:, 0])

    def said(self, item: int) -> dict[str, Any]:
        """Ids: of the most relevant document, and of the first that was found."""
        gains, found = self.relevance[item].gains, self.found[item]
        return {"expected": max(gains, key=gains.__getitem__), "found": found[0][0] if found else ""}


def in_order(scores: Scores) -> list[tuple[str, float]]:
    """Documents, the highest score first; of equal ones (in float32) that with the later id, as trec_eval does it."""
    return sorted(scores.items(), key=lambda pair: (np.float32(pair[1]), pair[0]), reverse=True)


def run_of(judged: Judged) -> bytes:
    """What a model found, as a run. Errors: BertcliError for what is no ranking."""
    outcome = judged.outcome
    if not isinstance(outcome, Ranked):
        raise BertcliError("A run (.trec) is written of retrieval and rank only: give another ending.")
    return run_lines([relevance.id for relevance in outcome.relevance], outcome.found, judged.name)


# ----------------------------------------------------------------------------------------------------------- retrieval


def retrieve(model: Model, labelled: Labelled, wanted: Evaluate) -> list[Judged]:
    """The documents of the corpus whose vectors have the largest cosine with the query's, never the query itself."""
    items, corpus = labelled.items, labelled.corpus
    if not isinstance(corpus, Corpus):
        raise BertcliError(f"{labelled.file} has no texts, so a model cannot be judged on it: give its folder.")
    depth = wanted.cutoffs[-1]
    judged = []
    for name, how, found in best_documents(
        model, [(item.texts[0], item.place) for item in items], corpus, depth, wanted
    ):
        scores = [
            None if some is None else {id: score for id, score in some.items() if id != item.truth.id}
            for item, some in zip(items, found, strict=True)
        ]
        judged.append(Judged(name, Ranked.of(items, scores, wanted.cutoffs), how))
    return judged


def given_run(labelled: Labelled, wanted: Evaluate) -> list[Judged]:
    """A run from a file: queries that it lacks have found nothing."""
    if wanted.run is None:
        return []
    run = read_run(wanted.run, labelled.left_out)
    scores: list[Scores | None] = [run.get(item.truth.id, {}) for item in labelled.items]
    return [Judged(wanted.run, Ranked.of(labelled.items, scores, wanted.cutoffs))]


# ---------------------------------------------------------------------------------------------------------------- rank


def rerank(model: Model, labelled: Labelled, wanted: Evaluate) -> list[Judged]:
    """The scores that a cross-encoder or late interaction gives the candidates."""
    pairs = [
        (item.texts[0], document, item.place, i, id)
        for i, item in enumerate(labelled.items)
        for id, document in item.truth.documents.items()
    ]
    pairs.sort(key=lambda pair: pair[0])  # those of one text stand together, as `rank` wants it
    scores: list[dict[str, float] | None] = [{} for _ in labelled.items]
    for record in model.rank(texts_of([pair[:3] for pair in pairs]), documents=(), **wanted.doing):
        *_, i, id = pairs[record["corpus_id"]]
        of_query = scores[i]
        if "error" in record:
            scores[i] = None
        elif of_query is not None:
            of_query[id] = record["score"]
    return [Judged(model.name, Ranked.of(labelled.items, scores, wanted.cutoffs))]


def own_order(labelled: Labelled, wanted: Evaluate) -> list[Judged]:
    """The candidates as they stand in the data, or as the run has them."""
    scores: list[Scores | None] = [
        {id: -place for place, id in enumerate(item.truth.documents)} for item in labelled.items
    ]
    return [Judged(OWN, Ranked.of(labelled.items, scores, wanted.cutoffs))]


def _candidates(row: Row) -> Item:
    query, documents, labels = row.values
    if not isinstance(documents, list) or not isinstance(labels, list) or len(documents) != len(labels):
        raise BertcliError(f"{row.place}: documents and labels must be two lists of one length.")
    ids = [f"{i:06d}" for i in range(len(documents))]
    gains = {id: number(row.place, label) for id, label in zip(ids, labels, strict=True)}
    texts = dict(zip(ids, (text(row, document) for document in documents), strict=True))
    return Item(row.place, (text(row, query),), Relevance(row.place, gains, texts), row.group)


def _query(row: Row) -> Item:
    id, gains, query = row.values
    return Item(row.place, (query,), Relevance(id, gains), row.group)


def with_candidates(labelled: Labelled, wanted: Evaluate) -> Labelled:
    """Queries with the texts of the documents that a run found for them."""
    if wanted.run is None:
        raise BertcliError("Which documents are to be ranked? Give a run with candidates (--run), such as BM25's.")
    run = read_run(wanted.run, labelled.left_out)
    order = {item.truth.id: [id for id, _ in in_order(run.get(item.truth.id, {}))] for item in labelled.items}
    texts = labelled.corpus.texts({id for ids in order.values() for id in ids})
    items = []
    for item in labelled.items:
        documents = {id: texts[id] for id in order[item.truth.id] if id in texts}
        items.append(item._replace(truth=item.truth._replace(documents=documents)))
    return labelled._replace(items=items)


TASKS = {"retrieval": Task(_query, retrieve, given_run), "rank": Task(_candidates, rerank, own_order)}
