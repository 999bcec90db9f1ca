"""Evaluators of `fill-mask` and `score`: rank and loss of the words at masks, and pseudo-perplexity of whole texts."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from bertcli.errors import number_of, quoted
from bertcli.files.labelled.fields import LABEL, NOTHING, TEXT, FieldSpec, read_texts
from bertcli.files.labelled.rows import Flags
from bertcli.files.texts import Item, Text
from bertcli.model import Model
from bertcli.statistics import metrics
from bertcli.statistics.intervals import FigureFacts
from bertcli.statistics.metrics import Figures, Numbers
from bertcli.tasks.compute.fill_mask import own_masks
from bertcli.tasks.parts.guesses import Guess, scored
from bertcli.tasks.registry import MASKED_SAMPLE
from bertcli.tasks.running.run import results
from bertcli.tasks.running.task import Record, RecordTask
from bertcli.wings.evaluate.evaluators.evaluator import Evaluator, FigureSpec
from bertcli.wings.evaluate.load.labelled import Labelled
from bertcli.wings.evaluate.options import Evaluate
from bertcli.wings.evaluate.outcome import Names, Outcome, mean_facts, mean_figures, usable

# The usual ranks K.
RANKS = (1, 5, 10)
# A word beyond this rank counts as not found.
DEEPEST = 100
# Why the sum of losses has no interval.
OF_THESE_TEXTS = "a sum over these texts, which grows with their number (its mean is loss)"


# ----------------------------------------------------------------------------------------------------------- fill-mask


def fill(model: Model, data: Labelled, options: Evaluate) -> list[Outcome]:
    """Predict the word at the mask of each text.

    accuracy@K: the share of texts with an accepted word among the first K; mrr: the mean of 1 / rank of the first one.
    A word beyond DEEPEST is not found; letter case does not count. loss: the mean of -log softmax(W H_i + b)[y_i] over
    the masked positions i, where y_i is the first accepted word that is one piece of the vocabulary; a text without
    such a word does not count. loss_sum: their sum. Errors: BertcliError for several masks in a text.
    """
    cutoffs = options.ranks(RANKS)
    records = model.fill_mask(data.texts, top_k=max(DEEPEST, *cutoffs), **options.reading_options)
    masks_of: dict[str | None, list[Any]] = {}
    for row, record in zip(data.rows, records, strict=True):
        masks_of[row.location] = record.get("masks", [])

    def one_mask(row: Text) -> list[Any]:
        masks = masks_of[row.location]
        if len(masks) > 1:
            raise ValueError(f"there are {len(masks)} masks; leave one.")
        return masks

    masks, readable = data.left_out.read_or_skip(data.rows, one_mask, list[Any]())
    ranks = np.zeros(len(records))
    best = [""] * len(records)
    for i, (row, of_row) in enumerate(zip(data.rows, masks, strict=True)):
        accepted = {_plain(word) for word in row.label}
        for mask in of_row:
            words = [_plain(prediction["token_str"]) for prediction in mask["predictions"]]
            ranks[i] = next((rank for rank, word in enumerate(words, 1) if word in accepted), np.inf)
            best[i] = ", ".join(words[:3])

    values = {f"accuracy@{k}": np.asarray(ranks <= k, np.float64) for k in cutoffs}
    values["mrr"] = metrics.ratio(1, ranks)
    values["loss"] = true_word_losses(model, data, options, readable & usable(records))
    return [
        Outcome(
            name=model.name,
            figures_from=mask_figures,
            arrays=[np.stack([*values.values()], axis=1)],
            columns=[*values],
            facts=mask_facts,
            usable=usable(records) & readable,
            badness=np.minimum(ranks - 1, DEEPEST),
            expected=[", ".join(row.label) for row in data.rows],
            found=best,
        )
    ]


def _plain(word: str) -> str:
    return word.strip().casefold()


def mask_figures(columns: Names, counts: Numbers, values: Numbers) -> Figures:
    """Means over texts; loss_sum, the sum of the losses; and perplexity = exp(loss)."""
    figures = mean_figures(columns, counts, values)
    losses = values[:, columns.index("loss")]
    loss_sum = counts @ np.where(np.isfinite(losses), losses, 0)
    # Without any loss there is no sum either.
    figures["loss_sum"] = np.where(np.isfinite(figures["loss"]), loss_sum, np.nan)
    return {**figures, "perplexity": np.exp(figures["loss"])}


def mask_facts(columns: Names, values: Numbers) -> FigureFacts:
    """Facts that the intervals need; loss_sum and perplexity are of the texts that have a loss."""
    losses = values[:, columns.index("loss")]
    means = mean_facts(columns, values)
    return FigureFacts(
        means.item_values,
        no_interval={"loss_sum": OF_THESE_TEXTS},
        losses=("loss", "perplexity"),
        counts=dict.fromkeys(("loss_sum", "perplexity"), int(np.isfinite(losses).sum())),
    )


def true_word_losses(model: Model, data: Labelled, options: Evaluate, chosen: Flags) -> Numbers:
    """-log p of the true word at the mask of each chosen text [text]; NaN where that is no single piece."""
    losses = np.full(len(data.rows), np.nan)
    targets: list[Text] = []
    rows: list[int] = []
    for i, (row, use) in enumerate(zip(data.rows, chosen, strict=True)):
        pieces = [model.tokenizer.pieces_of(word) for word in row.label] if use else []
        single = next((ids[0] for ids in pieces if len(ids) == 1), None)
        if single is not None:
            targets.append(row._replace(label=single))
            rows.append(i)
    task = _TrueWords(model, options.read_options)
    for block in results(task, data._replace(rows=targets).texts):
        for record in block.records():
            if "error" not in record:
                losses[rows[record["index"]]] = -record["log_prob"]
    return losses


class _TrueWords(RecordTask):
    """The log-probability at each text's mask of the piece that its label names."""

    def records(self, items: list[Item]) -> Iterator[Record]:
        guesses = [Guess(own_masks(self.model, item), [item.text.label]) for item in items]
        log_probs = scored(self.model, guesses, self.read_options.batch_tokens)
        for item, (log_prob,) in zip(items, log_probs, strict=True):
            yield {"index": item.index, "log_prob": log_prob}


# --------------------------------------------------------------------------------------------------------------- score


def score(model: Model, data: Labelled, options: Evaluate) -> list[Outcome]:
    """Predict every token of each text from all others."""
    records = model.score(data.texts, **options.reading_options)
    tokens = [[token["log_prob"] for token in record.get("tokens", ())] for record in records]
    total = np.array([-sum(some) for some in tokens], np.float64)
    count = np.array([*map(len, tokens)], np.float64)
    # A text that has a mask itself: its loss leaves that token out, so exp(loss) is no pseudo-perplexity.
    has_mask = np.array([record.get("pseudo_perplexity") is None for record in records], np.float64)
    losses = metrics.ratio(total, count)
    return [
        Outcome(
            name=model.name,
            figures_from=token_loss,
            arrays=[total, count, has_mask],
            facts=token_facts,
            usable=count > 0,
            badness=losses,
            expected=[""] * len(records),
            found=[f"loss {loss:.3f} a token" for loss in losses],
        )
    ]


def token_loss(columns: Names, counts: Numbers, total: Numbers, tokens: Numbers, has_mask: Numbers) -> Figures:
    """loss = Σ −log p / Σ tokens of all texts together, loss_sum = Σ −log p; pseudo_perplexity = exp(loss).

    A text with a mask of its own (`has_mask`) leaves no pseudo-perplexity. Salazar et al. 2020.
    """
    loss = metrics.ratio(counts @ total, counts @ tokens)
    every_token = counts @ has_mask == 0
    return {
        "loss": loss,
        "loss_sum": counts @ total,
        "pseudo_perplexity": np.where(every_token, np.exp(loss), np.nan),
    }


def token_facts(columns: Names, total: Numbers, tokens: Numbers, has_mask: Numbers) -> FigureFacts:
    """Say that two figures are of losses, and why a sum, and a pseudo-perplexity beside masks, have no interval."""
    no_interval = {"loss_sum": OF_THESE_TEXTS}
    if has_mask.any():
        with_mask = number_of(int(has_mask.sum()), "text")
        no_interval["pseudo_perplexity"] = f"not every token was predicted: {with_mask} with a mask in it"
    return FigureFacts(no_interval=no_interval, losses=("loss", "pseudo_perplexity"))


def read_words(value: Any) -> list[str]:
    """A word, or a list of words that are as good."""
    if not value:
        raise ValueError(f"{quoted(value)} is neither a word nor a list of words.")
    return read_texts(value)


LOSS = FigureSpec("mean of -log p of the true tokens", True)
# Neither: the sum of one file is no better than that of another. Models are compared by the mean.
LOSS_SUM = FigureSpec("sum of -log p of the true tokens, the loss that a masked language model is trained with", None)
EVALUATORS = {
    "fill-mask": Evaluator(
        unit="texts",
        fields=(TEXT, NOTHING, FieldSpec(("word", "accepted", "target", *LABEL), read_words)),
        figures={
            "accuracy@K": FigureSpec("share of masks whose word is among the first K predictions"),
            "mrr": FigureSpec("mean of 1 / rank of the word at the mask"),
            "loss": LOSS,
            "loss_sum": LOSS_SUM,
            "perplexity": FigureSpec("exp(loss): as hard as a choice among so many equally likely tokens", True),
        },
        evaluate=fill,
        place=6,
        options=("k",),
        ranks=RANKS,
        sample=MASKED_SAMPLE,
    ),
    "score": Evaluator(
        unit="texts",
        fields=(TEXT, NOTHING, NOTHING),
        figures={
            "loss": LOSS,
            "loss_sum": LOSS_SUM,
            "pseudo_perplexity": FigureSpec("exp(loss), each token predicted from all others", True),
        },
        evaluate=score,
        place=8,
        of_any_names=True,
        sample=MASKED_SAMPLE,
    ),
}
