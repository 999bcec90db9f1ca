"""Record what `probe` is compared with: `python tests/reference/record_probe.py`, with this repository importable.

Needs PyTorch, transformers and scikit-learn (recorded with torch 2.13.0, transformers 5.24.0, scikit-learn 1.9.1).
Folds, and for models with random weights ids, are bertcli's; states, fits and scores are not.
"""
# mypy: disable-error-code="import-not-found, import-untyped"

import json
import sys
import tempfile
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
import transformers
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, log_loss
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent), str(HERE.parents[1])]

from reference.lines import compact  # noqa: E402
from reference.probe_cases import (  # noqa: E402
    HELD,
    HELD_MODEL,
    HELD_STATES,
    MODEL,
    TRAINED,
    features,
    reviews,
    saved_classifier,
    sentences,
)

import bertcli  # noqa: E402
from bertcli.wings.interpret.compute.logistic import STRENGTHS  # noqa: E402
from bertcli.wings.interpret.compute.probe_folds import SEED, folds_of  # noqa: E402

transformers.logging.set_verbosity_error()
torch.set_num_threads(1)
FOLDS = 5


def regression(c: float) -> Pipeline:
    return make_pipeline(StandardScaler(), LogisticRegression(C=c, tol=1e-9, max_iter=100_000))


def logistic() -> list[dict[str, Any]]:
    """Coefficients and intercepts of features as they are; of more than two labels without what all have in common."""
    cases = []
    for seed, labels in ((1, 2), (2, 3), (3, 4)):
        x, y = features(seed, labels)
        for c in STRENGTHS:
            scaler, model = (step for _, step in regression(c).fit(x.astype(np.float64), y).steps)
            weights = model.coef_ / scaler.scale_
            biases = model.intercept_ - weights @ scaler.mean_
            cases.append(
                {"seed": seed, "labels": labels, "c": c, "coef": weights.tolist(), "intercept": biases.tolist()}
            )
    return cases


def probed(states: Any, labels: Any, folds: Any) -> list[dict[str, float]]:
    """Of the states of each layer [item, layer, width] accuracy and macro F1, means over the folds."""
    found = []
    for layer in range(states.shape[1]):
        x = states[:, layer]
        scores = []
        for fold in range(FOLDS):
            held, inner = folds == fold, folds == (fold + 1) % FOLDS
            rest = ~held & ~inner
            losses = []
            for c in STRENGTHS:
                told = regression(c).fit(x[rest], labels[rest]).predict_proba(x[inner])
                losses.append(log_loss(labels[inner], told, labels=np.unique(labels)))
            worse = (i for i, (one, weaker) in enumerate(pairwise(losses)) if weaker >= one)
            best = next(worse, len(losses) - 1)
            said = regression(STRENGTHS[best]).fit(x[~held], labels[~held]).predict(x[held])
            scores.append((np.mean(said == labels[held]), f1_score(labels[held], said, average="macro")))
        accuracy, f1 = np.mean(scores, axis=0)
        found.append({"accuracy": float(accuracy), "macro_f1": float(f1)})
    return found


def layers() -> dict[str, Any]:
    """The probes of a bundled model: of texts by the mean of all tokens, of words by the mean of their pieces."""
    folder = str(bertcli.load(MODEL).path)
    tokenizer, model = (kind.from_pretrained(folder) for kind in (transformers.AutoTokenizer, transformers.AutoModel))
    model = model.float().eval()

    def states(*texts: Any, **settings: Any) -> tuple[Any, Any]:
        tokens = tokenizer(*texts, return_tensors="pt", truncation=True, **settings)
        with torch.inference_mode():
            hidden = model(**tokens, output_hidden_states=True).hidden_states
        return tokens, torch.cat(hidden).double().numpy()

    texts, labels = reviews()
    of_texts = np.stack([states(text)[1].mean(axis=1) for text in texts])
    y = np.array(labels)
    folds = folds_of(np.unique(y, return_inverse=True)[1], FOLDS, np.random.default_rng(SEED))
    words, tags = sentences()
    of_words = []
    for some in words:
        tokens, hidden = states(some, is_split_into_words=True)
        ids = np.array([-1 if id is None else id for id in tokens.word_ids()])
        of_words += [hidden[:, ids == i].mean(axis=1) for i in range(len(some))]
    word_folds = np.repeat(
        folds_of(np.zeros(len(words), np.intp), FOLDS, np.random.default_rng(SEED)), [*map(len, words)]
    )
    return {
        "texts": probed(of_texts, y, folds),
        "words": probed(np.stack(of_words), np.array([tag for some in tags for tag in some]), word_folds),
    }


def classifiers() -> list[dict[str, Any]]:
    """Of a regression on the states of the first texts the probabilities of the others [text, label].

    C is the one that the saved probe chose.
    """
    folder = str(bertcli.load(HELD_MODEL).path)
    tokenizer, model = (kind.from_pretrained(folder) for kind in (transformers.AutoTokenizer, transformers.AutoModel))
    model = model.float().eval()
    texts, labels = reviews()
    found = []
    for pooling, layer in HELD_STATES:
        states = []
        for text in texts:
            with torch.inference_mode():
                hidden = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states[layer]
            states.append(hidden[0, 0] if pooling == "cls" else hidden[0].mean(axis=0))
        x, y = torch.stack(states).double().numpy(), np.array(labels)
        with tempfile.TemporaryDirectory() as root:
            c = saved_classifier(Path(root), pooling, layer).made["C"]
        told = regression(float(c)).fit(x[TRAINED], y[TRAINED])
        scores = told.predict_proba(x[HELD])
        found.append({"pooling": pooling, "layer": layer, "C": c, "scores": scores.tolist()})
    return found


def main() -> None:
    record = {"logistic": logistic(), "layers": layers(), "classifiers": classifiers()}
    text = json.dumps(compact(record), separators=(",", ":")).replace("},{", "},\n{").replace('],"', '],\n"')
    (HERE / "probe.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
