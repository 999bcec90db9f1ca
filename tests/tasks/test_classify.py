"""classify: scores from logits, and which head they come from."""

import math
from typing import Any

import numpy as np
import pytest
from conftest import Made

import bertcli
from bertcli.errors import BertcliError
from bertcli.model import Model


def test_classify_activations(made: Made) -> None:
    """Which one is a checkpoint's own is recorded, tests/network/test_reference.py."""
    model = bertcli.load(made(head="classifier", num_labels=3))

    def scores(activation: Any) -> dict[str, float]:
        (record,) = model.classify(["tea"], activation=activation)
        return {label["label"]: label["score"] for label in record["labels"]}

    logits = scores("none")
    assert scores("sigmoid") == pytest.approx({key: 1 / (1 + math.exp(-x)) for key, x in logits.items()})
    total = sum(map(math.exp, logits.values()))
    assert scores("softmax") == pytest.approx({key: math.exp(x) / total for key, x in logits.items()})


@pytest.mark.parametrize(("name", "scored"), [("Identity", lambda x: x), ("Tanh", math.tanh)])
def test_classify_uses_the_activation_of_a_cross_encoder(name: str, scored: Any, made: Made) -> None:
    named = {"sentence_transformers": {"activation_fn": f"torch.nn.{name}"}}
    model = bertcli.load(made(head="classifier", num_labels=1, config=named))

    def score(**options: Any) -> float:
        (record,) = model.classify(["tea"], ["hot"], **options)
        return float(record["labels"][0]["score"])

    assert score() == pytest.approx(scored(score(activation="none")))
    assert score() == pytest.approx(model.rank("tea", ["hot"])[0]["score"])
    assert score(activation="sigmoid") == pytest.approx(1 / (1 + math.exp(-score(activation="none"))))


@pytest.mark.parametrize(
    ("head", "command"), [("token_classifier", "tag"), ("qa", "answer"), ("multiple_choice", "classify --choices")]
)
def test_classify_says_what_another_head_is_for(head: str, command: str, made: Made) -> None:
    model = bertcli.load(made(head=head))
    with pytest.raises(BertcliError, match=rf"classify needs a classifier head.*{head} \(for {command}\)"):
        model.classify(["tea"])


def test_classify_scores_of_extreme_logits() -> None:
    from bertcli.tasks.parts.scores import SCORE_FUNCTIONS

    logits = np.array([[-1e4, 0.0, 1e4]])
    assert SCORE_FUNCTIONS["sigmoid"](logits).tolist() == [[0.0, 0.5, 1.0]]
    assert SCORE_FUNCTIONS["softmax"](logits).tolist() == [[0.0, 0.0, 1.0]]


def test_classify_next_sentence_head(mlm: Model, made: Made) -> None:
    (record,) = mlm.classify(["tea"], "coffee")
    assert {label["label"] for label in record["labels"]} == {"is_next", "not_next"}
    assert record == mlm.classify(["tea"], "coffee", head="nsp")[0]
    with pytest.raises(BertcliError, match=r"needs a second text, and text 1 \('tea'\) has none"):
        mlm.classify(["tea", "tea"], ["coffee", None])
    with pytest.raises(BertcliError, match=r"needs a classifier head.*its heads: mlm"):
        bertcli.load(made(head="mlm")).classify(["tea"])
    with pytest.raises(BertcliError, match="needs a next-sentence head"):
        bertcli.load(made(head="classifier")).classify(["tea"], "x", head="nsp")


def test_classify_refuses_another_number_of_labels_than_config_json_says(made: Made) -> None:
    with pytest.raises(BertcliError, match=r"has shape \(3, 32\), but config.json requires \(5, 32\)"):
        bertcli.load(made(head="classifier", num_labels=3, config={"num_labels": 5}))
    # Where it says nothing, the tensor does.
    assert len(bertcli.load(made(head="classifier", num_labels=3, config={"num_labels": None})).config.labels) == 3
