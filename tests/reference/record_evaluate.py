"""Record what the figures of evaluate are compared with: `python tests/reference/record_evaluate.py`.

Needs scipy, scikit-learn, pytrec_eval (pytrec_eval-terrier), seqeval and sentence-transformers (recorded with 1.17.1,
1.9.1, 0.5.11, 1.2.2, 6.2.0), and on the path squad_metrics.py, SQuAD's official script as transformers 4.57.6 has it
in data/metrics. Every case holds its numbers, so that tests need none of these.
"""
# mypy: disable-error-code="import-not-found, import-untyped"

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytrec_eval
import scipy.stats
import sklearn.metrics as sk
from sentence_transformers import SimilarityFunction
from sentence_transformers.sentence_transformer.evaluation import BinaryClassificationEvaluator
from seqeval.metrics.v1 import precision_recall_fscore_support
from seqeval.scheme import IOB1, IOB2, IOBES
from squad_metrics import compute_exact, compute_f1

Case = dict[str, Any]
SCHEMES = {"IOB1": IOB1, "IOB2": IOB2, "BIOES": IOBES}


def correlations(random: np.random.Generator) -> list[Case]:
    cases = []
    for count, digits in ((50, 12), (60, 1), (5, 0), (40, 6)):
        x = random.normal(size=count).round(digits)
        y = (x + random.normal(size=count)).round(digits)
        values = {"spearman": scipy.stats.spearmanr(x, y)[0], "pearson": scipy.stats.pearsonr(x, y)[0]}
        cases.append({"x": x.tolist(), "y": y.tolist(), **{name: float(value) for name, value in values.items()}})
    with warnings.catch_warnings(action="ignore"):
        same, other = [0.1] * 4, [1.0, 2.0, 3.0, 4.0]
        assert np.isnan(scipy.stats.spearmanr(same, other)[0])
        assert np.isnan(scipy.stats.pearsonr(same, other)[0])
    return [*cases, {"x": same, "y": other, "spearman": None, "pearson": None}]


def binary(random: np.random.Generator) -> list[Case]:
    cases = []
    for count, digits, share in ((60, 12, 0.4), (80, 1, 0.5), (30, 1, 0.1), (20, 2, 1.0), (20, 2, 0.0)):
        labels = (random.random(count) < share).astype(int)
        scores = (random.normal(size=count) / 3 + 0.3 * labels).round(digits)
        find = BinaryClassificationEvaluator
        with warnings.catch_warnings(action="ignore"):
            precision = sk.average_precision_score(labels, scores)
        accuracy, _ = find.find_best_acc_and_threshold(scores, labels, True)
        f1, _, _, threshold = find.find_best_f1_and_threshold(scores, labels, True)
        found = {"average_precision": precision, "best_f1": f1, "best_accuracy": accuracy}
        if labels.any():
            found["best_f1_threshold"] = threshold
        cases.append(
            {"scores": scores.tolist(), "labels": labels.tolist()} | {name: float(v) for name, v in found.items()}
        )
    return cases


def classification(random: np.random.Generator) -> list[Case]:
    cases = []
    for count, labels, true_labels in ((60, 3, 3), (40, 4, 3), (25, 2, 2), (12, 3, 1), (10, 2, 1)):
        true = random.integers(true_labels, size=count)
        logits = random.normal(size=(count, labels)) + 1.5 * np.eye(labels)[true]
        if labels == 4:
            logits[:, 2] -= 50  # never predicted, though true at times; label 3 is neither
            logits[:, 3] -= 50
        p = np.exp(logits)
        p = (p / p.sum(axis=1, keepdims=True)).round(9)
        p /= p.sum(axis=1, keepdims=True)
        chosen = p.argmax(axis=1)
        options: Case = {"labels": range(labels), "zero_division": 0}
        by_label = sk.precision_recall_fscore_support(true, chosen, **options)
        figures = {
            "accuracy": sk.accuracy_score(true, chosen),
            "macro_f1": sk.f1_score(true, chosen, average="macro", zero_division=0),
            "micro_f1": sk.f1_score(true, chosen, average="micro", zero_division=0),
            "weighted_f1": sk.f1_score(true, chosen, average="weighted", zero_division=0),
            "mcc": sk.matthews_corrcoef(true, chosen),
            "log_loss": sk.log_loss(true, p, labels=range(labels)),
            "brier": sk.brier_score_loss(true if labels > 2 else true == 1, p if labels > 2 else p[:, 1], **(
                {"labels": range(labels)} if labels > 2 else {"pos_label": True})),
        }  # fmt: skip
        cases.append(
            {
                "probabilities": p.tolist(),
                "true": true.tolist(),
                "figures": {name: float(value) for name, value in figures.items()},
                "by_label": [[float(value) for value in row] for row in by_label],
                "confusion": sk.confusion_matrix(true, chosen, labels=range(labels)).tolist(),
            }
        )
    return cases


def several(random: np.random.Generator) -> list[Case]:
    """Labels of which a text may have several: one is never true, one is never found, one neither."""
    cases = []
    for count in (40, 9):
        true, chosen = (random.random((count, 6)) < 0.4 for _ in range(2))
        true[:, 3], chosen[:, 4] = False, False
        true[:, 5] = chosen[:, 5] = False
        p = np.where(chosen, 0.5 + random.random((count, 6)) / 2, random.random((count, 6)) / 2).round(6)
        # A label that neither is true nor was found has no F1 to be a part of the mean.
        occurring = np.flatnonzero((true | chosen).any(axis=0))
        averages = {
            f"{name}_f1": sk.f1_score(true, chosen, average=name, labels=occurring, zero_division=0)
            for name in ("macro", "micro", "weighted")
        }
        figures = {**averages, "accuracy": sk.accuracy_score(true, chosen)}
        by_label = sk.precision_recall_fscore_support(true, chosen, zero_division=0)
        cases.append(
            {
                "probabilities": p.tolist(),
                "true": true.astype(int).tolist(),
                "figures": {name: float(value) for name, value in figures.items()},
                "by_label": [[float(value) for value in row] for row in by_label],
            }
        )
    return cases


def similarities(random: np.random.Generator) -> Case:
    """What sentence-transformers compares vectors with; one is zero."""
    x, y = (random.normal(size=(n, 5)).round(3).astype(np.float32) for n in (3, 4))
    y[3] = 0
    found = {
        name: SimilarityFunction.to_similarity_fn(name)(x, y).double().numpy().tolist()
        for name in SimilarityFunction.possible_values()
    }
    return {
        "x": x.tolist(),
        "y": y.tolist(),
        "found": {name: found[name] for name in ("cosine", "dot", "euclidean", "manhattan")},
    }


def tags(random: np.random.Generator) -> list[Case]:
    cases = []
    for scheme, prefixes in (("IOB1", "IB"), ("IOB2", "IB"), ("BIOES", "BIES")):
        names = ["O", *(f"{prefix}-{kind}" for prefix in prefixes for kind in ("PER", "LOC"))]
        true, said = ([[*random.choice(names, 9)] for _ in range(60)] for _ in range(2))
        said = [
            [a if random.random() < 0.7 else b for a, b in zip(*both, strict=True)]
            for both in zip(true, said, strict=True)
        ]
        true, said = ([[str(tag) for tag in some] for some in every] for every in (true, said))
        case: Case = {"scheme": scheme, "true": [" ".join(some) for some in true], "said": [" ".join(s) for s in said]}
        for average in ("micro", "macro", None):
            found = precision_recall_fscore_support(
                true, said, average=average, scheme=SCHEMES[scheme], zero_division=0
            )
            case[str(average)] = [np.asarray(value, float).tolist() for value in found[:3]]
        cases.append(case)
    return cases


def rankings(random: np.random.Generator) -> Case:
    """Graded and negative gains, equal scores, scores that differ beyond float32, relevant documents not found."""
    qrels: dict[str, dict[str, int]] = {}
    run: dict[str, dict[str, float]] = {}
    for q in range(25):
        documents = [f"d{i}" for i in random.permutation(40)[:30]]
        qrels[f"q{q}"] = {str(d): int(g) for d, g in zip(documents, random.integers(-1, 4, 12), strict=False)}
        qrels[f"q{q}"][documents[0]] = 1
        scores = random.normal(size=20).round(1) + (1e-9 * random.normal(size=20) if q % 2 else 0)
        run[f"q{q}"] = {str(d): float(s) for d, s in zip(random.permutation(documents)[:20], scores, strict=True)}
    measures = {"ndcg_cut.1,3,10,100", "map_cut.1,3,10,100", "recall.1,3,10,100", "P.1,3,10,100", "recip_rank"}
    found = pytrec_eval.RelevanceEvaluator(qrels, measures).evaluate(run)
    return {"qrels": qrels, "run": run, "found": {q: dict(sorted(found[q].items())) for q in sorted(found)}}


def wilson() -> list[Case]:
    """Shares near 0 and 1 and between, of few and many items."""
    cases = []
    for right, of in ((0, 3), (3, 3), (1, 6), (6, 6), (17, 30), (29, 30), (100, 100), (399, 400), (1, 10_000)):
        found = scipy.stats.binomtest(right, of).proportion_ci(method="wilson")
        cases.append({"right": right, "of": of, "interval": [float(found.low), float(found.high)]})
    return cases


def mcnemar() -> list[Case]:
    """The exact test: of the items on which one is right, a half is the better one's."""
    cases = []
    for better, worse in ((0, 0), (1, 0), (5, 0), (3, 9), (12, 12), (40, 61), (900, 1020), (9900, 10100)):
        p = scipy.stats.binomtest(better, better + worse).pvalue if better + worse else 1.0
        cases.append({"better": better, "worse": worse, "p": float(p)})
    return cases


def answers() -> list[Case]:
    pairs = [
        ("The king", "king"), ("the Eiffel Tower!", "Eiffel tower"), ("a tall tower", "the tower"), ("", ""), ("", "x"),
        ("x", ""), ("1,000 km", "1000 km"), ("in 1999", "1999"), ("the the", "the"), ("an  old\tman", "old man at sea"),
        ("U.S.A.", "usa"), ("well-known", "well known"), ("b b c", "b c c"), ("Ünder", "ünder"),
    ]  # fmt: skip
    return [
        {
            "answer": answer,
            "truth": truth,
            "exact": compute_exact(truth, answer),
            "f1": float(compute_f1(truth, answer)),
        }
        for answer, truth in pairs
    ]


def _without_nan(value: Any) -> Any:
    """Numbers, or lists of them, with None for NaN, which JSON does not have."""
    if isinstance(value, list):
        return [_without_nan(one) for one in value]
    return None if np.isnan(value) else value


def figures(random: np.random.Generator) -> Case:
    """A number for every figure that there is, of arrays as the evaluators make them.

    Those of libraries are scipy's and scikit-learn's, all others are written out here as their definitions say.
    """
    n = 40
    arrays: dict[str, list[Any]] = {}
    columns: dict[str, list[str]] = {"sts": [], "pairs": [], "score": []}
    found: list[Case] = []

    def add(made_as: str, values: dict[str, Any], pattern: str = "") -> None:
        for name, value in values.items():
            found.append({"made_as": made_as, "figure": pattern or name, "name": name, "value": float(value)})

    truth = random.normal(size=n).round(1)
    scores, dots = (truth + random.normal(size=n), truth + 2 * random.normal(size=n))
    arrays["sts"] = [truth, scores, dots]
    add("sts", {
        "spearman": scipy.stats.spearmanr(scores, truth)[0], "pearson": scipy.stats.pearsonr(scores, truth)[0],
        "spearman_dot": scipy.stats.spearmanr(dots, truth)[0], "pearson_dot": scipy.stats.pearsonr(dots, truth)[0],
    })  # fmt: skip

    labels = (random.random(n) < 0.4).astype(int)
    scores = (random.normal(size=n) + labels).round(3)
    arrays["pairs"] = [labels, scores]
    cuts = sorted({*scores.tolist()}, reverse=True)
    f1 = {cut: sk.f1_score(labels, scores >= cut) for cut in cuts}
    best = max(cuts, key=f1.__getitem__)
    below = next(score for score in cuts if score < best)
    add("pairs", {
        "average_precision": sk.average_precision_score(labels, scores),
        "best_f1": f1[best], "best_f1_threshold": (best + below) / 2,
        "best_accuracy": max(sk.accuracy_score(labels, scores >= cut) for cut in [np.inf, *cuts]),
    })  # fmt: skip

    true = random.integers(3, size=n)
    logits = random.normal(size=(n, 3)) + 1.5 * np.eye(3)[true]
    p = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    chosen, confidence = p.argmax(axis=1), p.max(axis=1)
    right = chosen == true
    arrays["classification"] = [p, np.eye(3)[chosen], np.eye(3)[true]]
    columns["classification"] = ["a", "b", "c"]
    by_confidence = right[np.argsort(-confidence)]
    gaps = []
    for k in range(15):
        inside = (confidence > k / 15) & (confidence <= (k + 1) / 15)
        gaps.append(abs(right[inside].mean() - confidence[inside].mean()) * inside.mean() if inside.any() else 0)
    add("classification", {
        "accuracy": sk.accuracy_score(true, chosen), "macro_f1": sk.f1_score(true, chosen, average="macro"),
        "micro_f1": sk.f1_score(true, chosen, average="micro"),
        "weighted_f1": sk.f1_score(true, chosen, average="weighted"), "mcc": sk.matthews_corrcoef(true, chosen),
        "ece": sum(gaps), "brier": sk.brier_score_loss(true, p, labels=range(3)),
        "log_loss": sk.log_loss(true, p, labels=range(3)),
        **{f"accuracy@{share}%": by_confidence[: n * share // 100].mean() for share in (50, 80, 90)},
    })  # fmt: skip

    there = random.poisson(1, size=(n, 2))
    kept = random.binomial(there, 0.7)
    said = kept + random.poisson(0.3, size=(n, 2))
    arrays["tag"], columns["tag"] = [kept, said, there], ["LOC", "PER"]
    by_type = 2 * kept.sum(axis=0) / (said.sum(axis=0) + there.sum(axis=0))
    precision, recall = kept.sum() / said.sum(), kept.sum() / there.sum()
    add("tag", {
        "precision": precision, "recall": recall, "f1": 2 * precision * recall / (precision + recall),
        "macro_f1": by_type.mean(),
    })  # fmt: skip
    add("tag", {"f1:LOC": by_type[0], "f1:PER": by_type[1]}, "f1:TYPE")

    unanswerable = random.random(n) < 0.3
    means = {
        "exact_match": random.integers(2, size=n).astype(float), "f1": random.random(n),
        "preferred": random.choice([0, 0.5, 1], n), "mean_difference": random.normal(size=n),
    }  # fmt: skip
    for name in ("exact_match", "f1"):
        means[f"{name}:answer"] = np.where(unanswerable, np.nan, means[name])
        means[f"{name}:no_answer"] = np.where(unanswerable, means[name], np.nan)
    ranked = {f"{name}@10": random.random(n) for name in ("ndcg", "map", "mrr", "recall", "precision")}
    arrays["means"] = [np.stack([*means.values(), *ranked.values()], axis=1)]
    columns["means"] = [*means, *ranked]
    add("means", {name: np.nanmean(values) for name, values in means.items()})
    for name, values in ranked.items():
        add("means", {name: values.mean()}, name.replace("10", "K"))

    ranks = random.integers(1, 30, size=n).astype(float)
    losses = np.where(random.random(n) < 0.1, np.nan, random.exponential(2, size=n))
    arrays["fill-mask"] = [np.stack([ranks <= 5, 1 / ranks, losses], axis=1)]
    columns["fill-mask"] = ["accuracy@5", "mrr", "loss"]
    add("fill-mask", {"accuracy@5": (ranks <= 5).mean()}, "accuracy@K")
    mean = np.nanmean(losses)
    add("fill-mask", {
        "mrr": (1 / ranks).mean(), "loss": mean, "loss_sum": np.nansum(losses), "perplexity": np.exp(mean),
    })  # fmt: skip

    tokens = random.integers(3, 20, size=n)
    total = tokens * random.exponential(2, size=n)
    arrays["score"] = [total, tokens, np.zeros(n)]
    loss = total.sum() / tokens.sum()
    add("score", {"loss": loss, "loss_sum": total.sum(), "pseudo_perplexity": np.exp(loss)})

    # By another generator, so that all other numbers stay.
    other = np.random.default_rng(49)
    letters = other.poisson(8, size=n)
    hidden = other.binomial(letters, 0.9)
    arrays["tag"] += [hidden, letters]
    add("tag", {"covered": hidden.sum() / letters.sum()})

    plain: dict[str, list[Any]] = {}
    for name, some in arrays.items():
        rounded = [np.asarray(array, float).round(12) for array in some]
        plain[name] = [[_without_nan(row) for row in array.tolist()] for array in rounded]
    return {"figures": found, "arrays": plain, "columns": columns}


if __name__ == "__main__":
    random = np.random.default_rng(38)
    recorded = {
        "correlations": correlations(random),
        "binary": binary(random),
        "classification": classification(random),
        "tags": tags(random),
        "rankings": rankings(random),
        "answers": answers(),
        "several": several(random),
        "similarities": similarities(random),
        "wilson": wilson(),
        "mcnemar": mcnemar(),
        **figures(np.random.default_rng(48)),
    }
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(value)}" for name, value in recorded.items())
    Path(__file__).with_name("evaluate.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
