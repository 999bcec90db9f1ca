"""fill-mask and score: how well a masked-language model knows the words that stand in texts."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bertcli.errors import BertcliError, shown
from bertcli.evaluate import metrics
from bertcli.evaluate.data import Item, Labelled, Row, text
from bertcli.evaluate.metrics import Figures, Numbers
from bertcli.evaluate.options import Evaluate
from bertcli.evaluate.outcome import Judged, Outcome, Task, listed, texts_of, usable
from bertcli.lean import lean_dataclass
from bertcli.model import Model

CUTOFFS = (1, 5, 10)
DEEPEST = 100  # a word beyond this rank counts as not found


@lean_dataclass
class Filled(Outcome):
    """The rank of the first accepted word [text], 0 beyond DEEPEST."""

    rank: Numbers
    accepted: Any
    best: Any
    cutoffs: Sequence[int]

    def figures(self, counts: Numbers) -> Figures:
        """accuracy@k: the share of texts with rank ≤ k; mrr: the mean of 1 / rank, 0 beyond DEEPEST."""
        hits = {k: np.asarray((self.rank > 0) & (self.rank <= k), np.float64) for k in self.cutoffs}
        figures = {f"accuracy@{k}": metrics.mean(hit, counts) for k, hit in hits.items()}
        return {**figures, "mrr": metrics.mean(metrics.ratio(1, self.rank), counts)}

    @property
    def losses(self) -> Numbers:
        return np.asarray(np.where(self.rank > 0, self.rank - 1, DEEPEST))

    def said(self, item: int) -> dict[str, Any]:
        return {"expected": ", ".join(self.accepted[item]), "found": self.best[item]}


@lean_dataclass
class Surprise(Outcome):
    """The sum of −log p of a text's tokens, each given all others, and how many they are [text]."""

    total: Numbers
    tokens: Numbers

    def figures(self, counts: Numbers) -> Figures:
        """loss = Σ −log p / Σ tokens of all texts together; pseudo_perplexity = exp(loss). Salazar et al. 2020."""
        loss = metrics.ratio(counts @ self.total, counts @ self.tokens)
        return {"loss": loss, "pseudo_perplexity": np.exp(loss)}

    @property
    def losses(self) -> Numbers:
        return metrics.ratio(self.total, self.tokens)

    def said(self, item: int) -> dict[str, Any]:
        return {"expected": "", "found": f"loss {self.losses[item]:.3f} a token"}


def _blank(row: Row) -> Item:
    words = row.values[2] if isinstance(row.values[2], list) else [row.values[2]]
    if not words or not all(isinstance(word, str) for word in words):
        raise BertcliError(f"{row.place}: {shown(row.values[2])} is neither a word nor a list of words.")
    return Item(row.place, (text(row, row.values[0]),), tuple(words), row.group)


def fill(model: Model, labelled: Labelled, wanted: Evaluate) -> list[Judged]:
    """The ranks of the accepted words; letter case does not count. Errors: BertcliError for several masks."""
    items, cutoffs = labelled.items, sorted({*(wanted.k or CUTOFFS)})
    source = texts_of([(item.texts[0], None, item.place) for item in items])
    records = model.fill_mask(source, top_k=max(DEEPEST, *cutoffs), **wanted.doing)
    ranks, best = np.zeros(len(items)), [""] * len(items)
    for i, (item, record) in enumerate(zip(items, records, strict=True)):
        masks = record.get("masks", [])
        if len(masks) > 1:
            raise BertcliError(f"{item.place}: there are {len(masks)} masks; leave one.")
        accepted = {word.strip().casefold() for word in item.truth}
        for predictions in (mask["predictions"] for mask in masks):
            words = [prediction["token_str"].strip().casefold() for prediction in predictions]
            ranks[i] = next((rank for rank, word in enumerate(words, 1) if word in accepted), 0)
            best[i] = ", ".join(words[:3])
    return [Judged(model.name, Filled(usable(records), ranks, listed([i.truth for i in items]), listed(best), cutoffs))]


def score(model: Model, labelled: Labelled, wanted: Evaluate) -> list[Judged]:
    """−log p of every token of every text."""
    items = labelled.items
    records = model.score(texts_of([(item.texts[0], None, item.place) for item in items]), **wanted.doing)
    tokens = [record.get("tokens", ()) for record in records]
    total = np.array([-sum(token["log_prob"] for token in some) for some in tokens], np.float64)
    counts = np.array([len(some) for some in tokens], np.float64)
    return [Judged(model.name, Surprise(usable(records), total, counts))]


TASKS = {
    "fill-mask": Task(_blank, fill),
    "score": Task(lambda row: Item(row.place, (text(row, row.values[0]),), None, row.group), score),
}
