"""Evaluator of `minimal-pairs` (BLiMP, CrowS-Pairs, yours): which of two nearly equal texts a model finds likelier."""

from typing import Any

import numpy as np

from bertcli.files.labelled.fields import NOTHING, FieldSpec, read_text
from bertcli.model import Model
from bertcli.tasks.registry import MASKED_SAMPLE, Needs
from bertcli.tasks.running.batches import check_needs
from bertcli.tasks.running.run import results
from bertcli.wings.evaluate.evaluators.evaluator import Evaluator, FigureSpec
from bertcli.wings.evaluate.load.labelled import Labelled
from bertcli.wings.evaluate.minimal_pairs import PairsTask
from bertcli.wings.evaluate.options import Evaluate
from bertcli.wings.evaluate.outcome import Outcome, means_of, usable

CAUTION = "The figures say which of two wordings is likelier; not what a model built on this one will do."
PREFERRED = {"text": 1.0, "text_pair": 0.0, None: 0.5}  # equal ones half


def evaluate(model: Model, data: Labelled, options: Evaluate) -> list[Outcome]:
    """Score both texts of each pair: `preferred`, how often the first is likelier, and by how much in the mean.

    Scores are sums of log-probabilities, of the tokens that --metric names.
    """
    check_needs(model, Needs("minimal-pairs", "mlm", MASKED_SAMPLE))
    task = PairsTask(model, options.read_options, options.metric or "pll")
    records: list[dict[str, Any]] = []
    for block in results(task, data.texts):
        records += block.records()
    gains = np.array([record.get("score", 0.0) - record.get("pair_score", 0.0) for record in records])
    preferred = np.array([PREFERRED[record.get("preferred")] for record in records])
    return [
        Outcome(
            name=model.name,
            **means_of({"preferred": preferred, "mean_difference": gains}),
            usable=usable(records),
            badness=-gains,
            expected=["the first text"] * len(records),
            found=[f"difference {gain:+.3f}" for gain in gains],
        )
    ]


EVALUATORS = {
    "minimal-pairs": Evaluator(
        unit="pairs",
        fields=(
            FieldSpec(("better", "sentence_good", "sent_more", "text", "sentence1"), read_text),
            FieldSpec(("worse", "sentence_bad", "sent_less", "text_pair", "sentence2"), read_text),
            NOTHING,
        ),
        figures={
            "preferred": FigureSpec("share of pairs in which the model finds the first text likelier; equal ones half"),
            "mean_difference": FigureSpec("mean of the first text's log-probability less the second's"),
        },
        evaluate=evaluate,
        options=("metric",),
        sample=MASKED_SAMPLE,
    ),
}
