"""The table of all figures that `evaluate` reports: their meaning and their tasks. metrics.py computes them.

In names, K stands for a rank (--k) and TYPE for a type of entities.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from bertcli.wings.evaluate.load.labelled import Labelled
from bertcli.wings.evaluate.options import Evaluate


class FigureSpec(NamedTuple):
    """A figure's meaning in a line. less_is_better: None if neither higher nor lower is better."""

    explanation: str
    less_is_better: bool | None = False


FIGURES = {
    "accuracy": FigureSpec("share of texts (of tag: of words) whose label, or nearer text, is right"),
    "macro_f1": FigureSpec("mean of the labels' F1, each label as important as another"),
    "micro_f1": FigureSpec("F1 of all labels together; with one label a text it equals accuracy"),
    "weighted_f1": FigureSpec("mean of the labels' F1, weighted by how often each is true"),
    "mcc": FigureSpec("Matthews correlation of true and predicted labels: 1 perfect, 0 no better than chance"),
    "ece": FigureSpec("expected calibration error: mean gap of confidence and accuracy over 15 bins", True),
    "brier": FigureSpec("Brier score: mean squared error of the probabilities", True),
    "log_loss": FigureSpec("mean of -log of the probability that the true label has", True),
    "accuracy@50%": FigureSpec("accuracy on the half of the texts with the highest confidence"),
    "accuracy@80%": FigureSpec("accuracy on the 80 % of the texts with the highest confidence"),
    "accuracy@90%": FigureSpec("accuracy on the 90 % of the texts with the highest confidence"),
    "spearman": FigureSpec("rank correlation of similarities with people's scores"),
    "pearson": FigureSpec("linear correlation of similarities with people's scores"),
    "spearman_dot": FigureSpec("rank correlation of dot products with people's scores"),
    "pearson_dot": FigureSpec("linear correlation of dot products with people's scores"),
    "average_precision": FigureSpec("area under precision over recall: pairs with label 1 ranked first"),
    "best_f1": FigureSpec("F1 at the threshold that is best on these pairs"),
    "best_f1_threshold": FigureSpec("the similarity at which F1 is best on these pairs", None),
    "best_accuracy": FigureSpec("accuracy at the threshold that is best on these pairs"),
    "ndcg@K": FigureSpec("gain of the first K documents, discounted by rank, over that of the best order"),
    "map@K": FigureSpec("mean average precision of the first K documents"),
    "mrr@K": FigureSpec("mean of 1 / rank of the first relevant document; 0 beyond K"),
    "recall@K": FigureSpec("share of a query's relevant documents among the first K"),
    "precision@K": FigureSpec("share of the first K documents that are relevant"),
    "f1": FigureSpec("harmonic mean of precision and recall"),
    "precision": FigureSpec("share of the entities found that are right, in extent and type"),
    "recall": FigureSpec("share of the true entities that are found, in extent and type"),
    "f1:TYPE": FigureSpec("F1 of the entities of one type"),
    "exact_match": FigureSpec("share of the answers that equal one of people's, but for case, articles, punctuation"),
    "exact_match:answer": FigureSpec("exact_match of the questions that have an answer"),
    "f1:answer": FigureSpec("F1 of the questions that have an answer"),
    "exact_match:no_answer": FigureSpec("share of the questions without an answer for which the model gives none"),
    "f1:no_answer": FigureSpec("share of the questions without an answer for which the model gives none"),
    "accuracy@K": FigureSpec("share of masks whose word is among the first K predictions"),
    "mrr": FigureSpec("mean of 1 / rank of the word at the mask"),
    "loss": FigureSpec("mean of -log p of the true tokens", True),
    # Neither: the sum of one file is no better than that of another. Models are compared by the mean.
    "loss_sum": FigureSpec(
        "sum of -log p of the true tokens, the loss that a masked language model is trained with", None
    ),
    "perplexity": FigureSpec("exp(loss): as hard as a choice among so many equally likely tokens", True),
    "pseudo_perplexity": FigureSpec("exp(loss), each token predicted from all others", True),
    "preferred": FigureSpec("share of pairs in which the model finds the first text likelier; equal ones half"),
    "mean_difference": FigureSpec("mean of the first text's log-probability less the second's"),
}
# Figures that one task means otherwise.
OF_ONE_TASK = {
    ("bertscore", "precision"): "mean similarity of the candidate's tokens to the nearest of the reference",
    ("bertscore", "recall"): "mean similarity of the reference's tokens to the nearest of the candidate",
}
FIGURES_OF_TASK = {
    "sts": ("spearman", "pearson", "spearman_dot", "pearson_dot"),
    "pairs": ("average_precision", "best_f1", "best_f1_threshold", "best_accuracy"),
    "triplets": ("accuracy",),
    "retrieval": ("ndcg@K", "map@K", "mrr@K", "recall@K", "precision@K"),
    "rank": ("ndcg@K", "map@K", "mrr@K", "recall@K", "precision@K"),
    "classification": (
        *("accuracy", "macro_f1", "micro_f1", "weighted_f1", "mcc", "ece", "brier", "log_loss"),
        *("accuracy@50%", "accuracy@80%", "accuracy@90%"),
    ),
    "tag": ("f1", "precision", "recall", "macro_f1", "accuracy", "f1:TYPE"),
    "answer": ("exact_match", "f1", "exact_match:answer", "f1:answer", "exact_match:no_answer", "f1:no_answer"),
    "fill-mask": ("accuracy@K", "mrr", "loss", "loss_sum", "perplexity"),
    "minimal-pairs": ("preferred", "mean_difference"),
    "bertscore": ("f1", "precision", "recall"),
    "score": ("loss", "loss_sum", "pseudo_perplexity"),
}
RANK = re.compile(r"@\d+$")


def spec_of(name: str) -> FigureSpec:
    """The specification of a figure by its name in a record, such as "ndcg@10" or "f1:PER"."""
    if name in FIGURES:
        return FIGURES[name]
    if name.startswith("f1:"):
        return FIGURES["f1:TYPE"]
    return FIGURES[RANK.sub("@K", name)]


def explanation(name: str, task: str) -> str:
    """The meaning of a task's figure in a line."""
    return OF_ONE_TASK.get((task, name), spec_of(name).explanation)


def possible_figures(data: Labelled, options: Evaluate) -> list[str]:
    """The names of the figures that this data can give, before any model has run.

    Some depend on the model as well: spearman_dot, for one, exists where vectors are not normalized.
    """
    names: list[str] = []
    for pattern in FIGURES_OF_TASK[data.task]:
        if pattern.endswith("@K"):
            names += [pattern.replace("K", str(k)) for k in options.ranks(data.task)]
        elif pattern == "f1:TYPE":
            names += [f"f1:{type}" for type in _types(data)]
        else:
            names.append(pattern)
    if data.task == "answer" and all(row.label for row in data.rows):
        names = [name for name in names if ":" not in name]
    return names


def _types(data: Labelled) -> Sequence[str]:
    tags = {tag for row in data.rows for tag in row.label.tags}
    return sorted({tag[2:] for tag in tags if tag != "O"})
