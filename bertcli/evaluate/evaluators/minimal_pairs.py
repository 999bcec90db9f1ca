"""Pairs of texts that differ a little, summed up: how often the first one is likelier, for all and for each group."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bertcli.evaluate.evaluation import Evaluation, judged
from bertcli.evaluate.load.tables import Labelled, LeftOut
from bertcli.evaluate.outcome import Outcome, means_of, usable
from bertcli.evaluate.report.tables import figures_of, interval
from bertcli.files.texts import Text

CAUTION = "The figures say which of two wordings is likelier; not what a model built on this one will do."
PREFERRED = {"text": 1.0, "text_pair": 0.0, None: 0.5}  # equal ones half


def preferences(records: Sequence[Mapping[str, Any]], model: str) -> Evaluation:
    """`preferred`: how often the first text is likelier; `difference`: by how much in the mean; groups are ids.

    Errors: BertcliError if no pair could be scored.
    """
    scored = [record for record in records if "error" not in record]
    rows = [Text(record["text"], record["text_pair"], None, record.get("id")) for record in scored]
    gains = np.array([record["score"] - record["pair_score"] for record in scored])
    preferred = np.array([PREFERRED[record["preferred"]] for record in scored])
    figures, found = {"preferred": preferred, "difference": gains}, [f"difference {gain:+.3f}" for gain in gains]
    outcome = Outcome(model, *means_of(figures), usable(scored), np.abs(gains), [""] * len(rows), found)
    return judged(Labelled("the input", "pairs", "", rows, LeftOut(True)), [outcome])


def sentences(evaluation: Evaluation) -> Iterator[str]:
    """In words, for all pairs and for each group."""
    (model,), counts = evaluation.record["models"], Counter(str(row.id) for row in evaluation.data.rows)
    for group, figures in figures_of(model).items():
        share, mean = figures["preferred"], figures["difference"]
        count = evaluation.record["count"] if group is None else counts[group]
        likelier = f"the first text is likelier in {share['value']:.1%} of {count:,} pairs {interval(share)}"
        yield f"{f'{group}: ' if group else ''}{likelier}, by {mean['value']:+.3f} in the mean {interval(mean)}."
