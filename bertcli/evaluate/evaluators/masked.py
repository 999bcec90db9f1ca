"""fill-mask and score: how well a masked-language model knows the words that stand in texts."""

from typing import Any

import numpy as np

from bertcli.evaluate import metrics
from bertcli.evaluate.load.tables import Labelled
from bertcli.evaluate.metrics import Figures, Numbers
from bertcli.evaluate.options import Evaluate
from bertcli.evaluate.outcome import Outcome, means_of, usable
from bertcli.files.texts import Text
from bertcli.model import Model

DEEPEST = 100  # a word beyond this rank counts as not found


def fill(model: Model, data: Labelled, wanted: Evaluate) -> list[Outcome]:
    """accuracy@k: the share of texts whose first accepted word has rank ≤ k; mrr: the mean of 1 / rank.

    A word beyond DEEPEST is not found; letter case does not count. Errors: BertcliError for several masks.
    """
    cutoffs = wanted.ranks("fill-mask")
    records = model.fill_mask(data.texts, top_k=max(DEEPEST, *cutoffs), **wanted.doing)
    ranks, best = np.zeros(len(records)), [""] * len(records)
    masks_of: dict[str | None, list[Any]] = {
        row.place: record.get("masks", []) for row, record in zip(data.rows, records, strict=True)
    }

    def one_mask(row: Text) -> list[Any]:
        if len(masks := masks_of[row.place]) > 1:
            raise ValueError(f"there are {len(masks)} masks; leave one.")
        return masks

    every, fits = data.left_out.what_fits(data.rows, one_mask, list[Any]())
    for i, (row, masks) in enumerate(zip(data.rows, every, strict=True)):
        accepted = {word.strip().casefold() for word in row.label}
        for mask in masks:
            words = [prediction["token_str"].strip().casefold() for prediction in mask["predictions"]]
            ranks[i] = next((rank for rank, word in enumerate(words, 1) if word in accepted), np.inf)
            best[i] = ", ".join(words[:3])
    figures = {f"accuracy@{k}": ranks <= k for k in cutoffs} | {"mrr": metrics.ratio(1, ranks)}
    losses = np.minimum(ranks - 1, DEEPEST)
    expected = [", ".join(row.label) for row in data.rows]
    return [Outcome(model.name, *means_of(figures), usable(records) & fits, losses, expected, best)]


def score(model: Model, data: Labelled, wanted: Evaluate) -> list[Outcome]:
    """loss: the sum of −log p of every token, each given all others, over all texts, divided by their number."""
    records = model.score(data.texts, **wanted.doing)
    tokens = [[token["log_prob"] for token in record.get("tokens", ())] for record in records]
    total, count = np.array([-sum(some) for some in tokens], float), np.array([*map(len, tokens)], float)
    losses = metrics.ratio(total, count)
    found = [f"loss {loss:.3f} a token" for loss in losses]
    return [Outcome(model.name, surprise, [total, count], count > 0, losses, [""] * len(records), found)]


def surprise(counts: Numbers, total: Numbers, tokens: Numbers) -> Figures:
    """loss = Σ −log p / Σ tokens of all texts together; pseudo_perplexity = exp(loss). Salazar et al. 2020."""
    loss = metrics.ratio(counts @ total, counts @ tokens)
    return {"loss": loss, "pseudo_perplexity": np.exp(loss)}
