"""The Python API of the run commands: against the network by hand, and for what it promises of streams and errors."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from checkpoints import Dense, Sentence, make
from conftest import Made
from numpy.typing import NDArray

import bertcli
from bertcli import tasks
from bertcli.errors import BertcliError
from bertcli.model import Model
from bertcli.packing import pack
from bertcli.tasks.windows import micro_batches

TEXTS = ("The cat sat on the mat.", "", "tea", "She poured a cup of hot coffee, and he drank it.")
Array = NDArray[Any]
BY_HAND: dict[str, Callable[[Array], Array]] = {
    "mean": lambda x: x.mean(axis=0), "cls": lambda x: x[0], "max": lambda x: x.max(axis=0)
}  # fmt: skip


@pytest.fixture
def mlm(made: Made) -> Model:
    return bertcli.load(made(head="pretraining", seed=7))


@pytest.fixture
def classifier(made: Made) -> Model:
    return bertcli.load(made(head="classifier", id2label={0: "bad", 1: "good", 2: "so-so"}))


def states(model: Model, text: str, pair: str | None = None) -> list[Array]:
    """Hidden states [token, hidden] of every layer."""
    return list(model.network.states(pack(model.tokenizer.encode([text], [pair]))))


def log_probabilities(model: Model, ids: list[int]) -> Array:
    """log softmax over the vocabulary at every token of one sentence."""
    assert model.network.mlm is not None
    hidden = model.forward([ids])[0]
    x = model.network.mlm(hidden).astype(np.float64)
    return np.asarray(x - np.log(np.exp(x).sum(axis=-1, keepdims=True)))


# -------------------------------------------------------------------------------------------------------------- encode


@pytest.mark.parametrize("layer", [-1, 0, 1, 2, -3, (0, -1), (2, 1, 0)])
@pytest.mark.parametrize("pooling", ["mean", "cls", "max"])
def test_poolings_and_layers(pooling: str, layer: int | tuple[int, ...], mlm: Model) -> None:
    found = tasks.encode(mlm, TEXTS, pooling=pooling, layer=layer)
    numbers = (layer,) if isinstance(layer, int) else layer
    for vector, text in zip(found, TEXTS, strict=True):
        expected = np.concatenate([BY_HAND[pooling](states(mlm, text)[number]) for number in numbers])
        np.testing.assert_allclose(vector, expected, rtol=0, atol=1e-5)


def test_the_pooler_is_the_checkpoints(mlm: Model) -> None:
    assert mlm.network.pooler is not None
    expected = mlm.network.pooler(states(mlm, "tea")[-1][:1])
    np.testing.assert_allclose(tasks.encode(mlm, ["tea"], pooling="pooler"), expected, rtol=0, atol=1e-6)


def test_vectors_of_tokens(mlm: Model) -> None:
    (block,) = tasks.encode_blocks(mlm, TEXTS, pooling="none", layer=(1, 2))
    for item, vectors in zip(block.items, block.vectors, strict=True):
        expected = np.concatenate(states(mlm, item.text.text)[1:], axis=1)
        np.testing.assert_allclose(vectors, expected, rtol=0, atol=1e-5)
    records = list(block.records())
    assert records[1]["tokens"] == ["[CLS]", "[SEP]"]
    assert np.shape(records[1]["embeddings"]) == (2, 64)
    with pytest.raises(BertcliError, match="encode_blocks"):
        tasks.encode(mlm, TEXTS, pooling="none")


def test_normalised_vectors_have_length_one(mlm: Model) -> None:
    plain, unit = (tasks.encode(mlm, TEXTS, normalize=normalize) for normalize in (None, True))
    np.testing.assert_allclose(unit, plain / np.linalg.norm(plain, axis=1, keepdims=True), rtol=0, atol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, rtol=0, atol=1e-6)
    (block,) = tasks.encode_blocks(mlm, ["tea"], pooling="none", normalize=True)
    np.testing.assert_allclose(np.linalg.norm(block.vectors[0], axis=1), 1, rtol=0, atol=1e-6)


def test_the_length_of_a_zero_vector_is_no_division(made: Made) -> None:
    from bertcli.tasks.plan import unit
    from bertcli.tasks.similarity import cosines

    zero = np.zeros((2, 4), np.float32)
    assert np.array_equal(unit(zero), zero)
    assert np.array_equal(np.concatenate(list(cosines(zero))), np.eye(2))


def test_what_the_checkpoint_says_is_the_default(made: Made) -> None:
    sentence = Sentence(pooling=("cls", "mean"), normalize=True, dense=(Dense(10),), max_seq_length=5)
    model = bertcli.load(made(sentence=sentence))
    stream = tasks.encode_blocks(model, TEXTS)
    assert (stream.plan.pooling, stream.plan.width, stream.plan.normalize) == (("cls", "mean"), 10, True)
    (block,) = stream
    assert [len(item.tokens.ids) for item in block.items] == [5, 2, 3, 5]
    np.testing.assert_allclose(np.linalg.norm(np.asarray(block.vectors), axis=1), 1, rtol=0, atol=1e-6)
    assert not tasks.encode_blocks(model, TEXTS, normalize=False).plan.normalize


@pytest.mark.parametrize("choice", [{"pooling": "mean"}, {"layer": (0, 1)}])
def test_a_dense_layer_is_applied_or_refused(choice: dict[str, Any], made: Made) -> None:
    model = bertcli.load(made(sentence=Sentence(pooling=("cls", "mean"), dense=(Dense(10),))))
    with pytest.raises(BertcliError, match="Dense layer takes vectors of length 64"):
        tasks.encode(model, TEXTS, **choice)
    assert tasks.encode(model, TEXTS, pooling="mean", layer=(0, 1)).shape == (4, 10)


@pytest.mark.parametrize("layer", [3, -4, (0, 3)])
def test_layers_that_are_not_there(layer: Any, mlm: Model) -> None:
    with pytest.raises(BertcliError, match=r"no layer -?\d: layers are 0"):
        tasks.encode(mlm, TEXTS, layer=layer)


def test_the_pooler_needs_the_last_layer_and_a_pooler(mlm: Model, made: Made) -> None:
    with pytest.raises(BertcliError, match="only works on the last layer"):
        tasks.encode(mlm, TEXTS, pooling="pooler", layer=1)
    with pytest.raises(BertcliError, match=r"needs a pooler, which .* does not have; its heads: mlm"):
        tasks.encode(bertcli.load(made(head="mlm")), TEXTS, pooling="pooler")
    with pytest.raises(BertcliError, match="no pooling 'sum'"):
        tasks.encode(mlm, TEXTS, pooling="sum")


def test_no_texts_no_vectors(mlm: Model) -> None:
    assert tasks.encode(mlm, []).shape == (0, 32)
    assert tasks.encode(mlm, [], layer=(0, 1)).shape == (0, 64)
    assert list(tasks.similarity([])) == []


def test_one_text_may_stand_alone(mlm: Model) -> None:
    assert np.array_equal(tasks.encode(mlm, "tea"), tasks.encode(mlm, ["tea"]))


def test_similarity(mlm: Model) -> None:
    vectors = tasks.encode(mlm, TEXTS).astype(np.float64)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    blocks = list(tasks.encode_blocks(mlm, TEXTS))
    records = list(tasks.similarity(blocks))
    np.testing.assert_allclose([record["cosine"] for record in records], vectors @ vectors.T, rtol=0, atol=1e-6)
    assert [list(record) for record in records] == [["index", "text", "cosine"]] * len(TEXTS)
    assert [(record["index"], record["text"]) for record in records] == list(enumerate(TEXTS))
    with patch("bertcli.tasks.similarity.NUMBERS", len(TEXTS) * 2):
        assert list(tasks.similarity(blocks)) == records


# ------------------------------------------------------------------------------------------------------------- streams


def test_blocks_come_while_texts_are_still_being_read(mlm: Model) -> None:
    texts: Iterator[str] = (f"text {number}" for number in itertools.count())
    blocks = iter(tasks.encode_blocks(mlm, texts, batch_tokens=20))
    found = [item for _ in range(5) for item in next(blocks).items]
    assert [item.index for item in found] == list(range(len(found)))
    assert [item.text.text for item in found[:3]] == ["text 0", "text 1", "text 2"]
    assert int(next(texts).split()[1]) < 2 * len(found) + 10


def test_records_keep_the_order_of_texts_of_mixed_length(classifier: Model) -> None:
    texts = ["word " * (number * 7 % 30) for number in range(100)]
    found = list(tasks.classify(classifier, texts, batch_tokens=50))
    assert [(record["index"], record["text"]) for record in found] == list(enumerate(texts))


def test_what_is_wrong_with_the_wish_is_said_before_any_text_is_read(mlm: Model) -> None:
    def texts() -> Iterator[str]:
        raise AssertionError("a text was read")
        yield ""

    for wish in (
        lambda: tasks.encode_blocks(mlm, texts(), pooling="x"),
        lambda: tasks.classify(mlm, texts(), head="classifier"),
        lambda: tasks.classify(mlm, texts(), top_k=0),
        lambda: tasks.classify(mlm, texts(), head="mlm"),  # type: ignore[arg-type]
        lambda: tasks.classify(mlm, texts(), activation="relu"),  # type: ignore[arg-type]
        lambda: tasks.score(mlm, texts(), truncation="maybe"),  # type: ignore[arg-type]
        lambda: tasks.encode_blocks(mlm, texts(), layer=[]),
        lambda: tasks.encode_blocks(mlm, texts(), layer="1"),  # type: ignore[arg-type]
        lambda: tasks.encode_blocks(mlm, texts(), layer=0.5),  # type: ignore[arg-type]
        lambda: tasks.fill_mask(mlm, texts(), targets=["☃☃"]),
        lambda: tasks.fill_mask(mlm, texts(), targets=["\ud800"]),
        lambda: tasks.fill_mask(mlm, texts(), targets=[1]),  # type: ignore[list-item]
        lambda: tasks.fill_mask(mlm, texts(), max_length=1),
        lambda: tasks.score(mlm, texts(), max_length=49),
        lambda: tasks.score(mlm, texts(), batch_tokens=0),
    ):
        with pytest.raises(BertcliError):
            wish()


@pytest.mark.parametrize("texts", [[None], [3], [b"tea"], ["tea", 1.5]])
def test_what_is_no_text_is_said_to_be_none(texts: list[Any], mlm: Model) -> None:
    for given in ((texts,), (["tea"] * len(texts), [text if text else 0 for text in texts])):
        with pytest.raises(BertcliError, match="must be a string"):
            mlm.encode(*given)


def test_layers_are_any_whole_numbers(mlm: Model) -> None:
    np.testing.assert_array_equal(mlm.encode(["tea"], layer=np.int64(-1)), mlm.encode(["tea"]))  # type: ignore[arg-type]


def test_one_target_may_be_given_by_itself(mlm: Model) -> None:
    assert mlm.fill_mask(["[MASK]"], targets="tea") == mlm.fill_mask(["[MASK]"], targets=["tea"])


@pytest.mark.parametrize("budget", [1, 5, 10, 1000])
def test_micro_batches_hold_every_text_once(budget: int) -> None:
    lengths = [5, 2, 9, 2, 7, 1, 30]
    batches = list(micro_batches(lengths, budget))
    assert sorted(itertools.chain(*batches)) == list(range(len(lengths)))
    assert all(len(batch) == 1 or sum(lengths[i] for i in batch) <= budget for batch in batches)


# ---------------------------------------------------------------------------------------------------- limits, cutting


def test_the_limit_is_the_smallest_of_the_models_own(made: Made) -> None:
    long = "word " * 60
    for settings, limit in (
        ({}, 48),
        ({"model_max_length": 40}, 40),
        ({"model_max_length": 40, "sentence": Sentence(max_seq_length=9)}, 9),
        ({"model_max_length": 100}, 48),
    ):
        (block,) = tasks.encode_blocks(bertcli.load(made(**settings)), [long], truncation="silent")
        assert len(block.items[0].tokens.ids) == limit
    (block,) = tasks.encode_blocks(bertcli.load(made(model_max_length=40)), [long], max_length=48, truncation="silent")
    assert len(block.items[0].tokens.ids) == 48


def test_what_was_cut_is_summed_up_once(mlm: Model, caplog: pytest.LogCaptureFixture) -> None:
    records = list(tasks.score(mlm, ["the cat sat", "tea", "a b c d"], max_length=4))
    assert [record["truncated"] for record in records] == [True, False, True]
    assert caplog.messages == [
        "2 of 3 texts had more than 4 tokens and lost 3 (see max_length and truncation: --max-length, --truncation)."
    ]
    caplog.clear()
    list(tasks.score(mlm, ["the cat sat"], max_length=4, truncation="silent"))
    assert caplog.messages == []
    with pytest.raises(BertcliError, match=r"text 1 \('the cat sat'\) has 5 tokens, more than 4"):
        list(tasks.score(mlm, ["tea", "the cat sat"], max_length=4, truncation="error"))


# ------------------------------------------------------------------------------------------------------------ classify


def test_labels_best_first(classifier: Model) -> None:
    (record,) = tasks.classify(classifier, ["tea"], ["coffee"])
    assert list(record) == ["index", "text", "text_pair", "truncated", "labels"]
    assert record["text_pair"] == "coffee"
    scores = [label["score"] for label in record["labels"]]
    assert scores == sorted(scores, reverse=True)
    assert sum(scores) == pytest.approx(1)
    (best,) = tasks.classify(classifier, ["tea"], ["coffee"], top_k=1)
    assert best["labels"] == record["labels"][:1]


@pytest.mark.parametrize(
    ("config", "labels", "expected"),
    [
        ({}, 3, "softmax"),
        ({}, 1, "sigmoid"),
        ({"problem_type": "multi_label_classification"}, 3, "sigmoid"),
        ({"problem_type": "single_label_classification"}, 3, "softmax"),
        ({"problem_type": "regression"}, 1, "none"),
        ({"problem_type": "regression"}, 3, "none"),
    ],
)
def test_activations(config: dict[str, str], labels: int, expected: Any, made: Made) -> None:
    model = bertcli.load(made(head="classifier", num_labels=labels, config=config))

    def scores(activation: Any) -> dict[str, float]:
        (record,) = tasks.classify(model, ["tea"], activation=activation)
        return {label["label"]: label["score"] for label in record["labels"]}

    logits = scores("none")
    assert set(logits) == {f"LABEL_{i}" for i in range(labels)}
    assert scores("sigmoid") == pytest.approx({key: 1 / (1 + math.exp(-x)) for key, x in logits.items()})
    total = sum(map(math.exp, logits.values()))
    assert scores("softmax") == pytest.approx({key: math.exp(x) / total for key, x in logits.items()})
    assert scores(None) == scores(expected)


def test_scores_of_extreme_logits() -> None:
    from bertcli.tasks.classify import activated

    logits = np.array([[-1e4, 0.0, 1e4]])
    assert activated(logits, "sigmoid").tolist() == [[0.0, 0.5, 1.0]]
    assert activated(logits, "softmax").tolist() == [[0.0, 0.0, 1.0]]


def test_the_next_sentence_head(mlm: Model, made: Made) -> None:
    (record,) = tasks.classify(mlm, ["tea"], "coffee")
    assert {label["label"] for label in record["labels"]} == {"is_next", "not_next"}
    assert record == next(tasks.classify(mlm, ["tea"], "coffee", head="nsp"))
    with pytest.raises(BertcliError, match=r"needs a second text, and text 1 \('tea'\) has none"):
        list(tasks.classify(mlm, ["tea", "tea"], ["coffee", None]))
    with pytest.raises(BertcliError, match=r"needs a classifier head.*its heads: mlm"):
        tasks.classify(bertcli.load(made(head="mlm")), ["tea"])
    with pytest.raises(BertcliError, match="needs a next-sentence head"):
        tasks.classify(bertcli.load(made(head="classifier")), ["tea"], "x", head="nsp")


# ----------------------------------------------------------------------------------------------------------- fill_mask


def test_predictions_are_the_softmax_over_the_vocabulary(mlm: Model) -> None:
    text = "The [MASK] sat on [MASK]."
    (record,) = tasks.fill_mask(mlm, [text], top_k=10_000)
    (tokens,) = mlm.tokenizer.encode([text])
    expected = np.exp(log_probabilities(mlm, tokens.ids))
    assert [mask["position"] for mask in record["masks"]] == [2, 5]
    for mask in record["masks"]:
        found = mask["predictions"]
        assert [one["token"] for one in found] == np.argsort(-expected[mask["position"]], kind="stable").tolist()
        scores = [one["score"] for one in found]
        np.testing.assert_allclose(scores, np.sort(expected[mask["position"]])[::-1], rtol=0, atol=1e-6)
        assert sum(scores) == pytest.approx(1)


@pytest.mark.parametrize(
    ("text", "pair", "expected"),
    [
        ("A  [MASK]\tX\u2028y [MASK] Ü.", None, ["A  tea\tX\u2028y [MASK] Ü.", "A  [MASK]\tX\u2028y tea Ü."]),
        ("[MASK]", None, ["tea"]),
        ("😀 é[MASK]é", None, ["😀 éteaé"]),
        ("no mask", "Here [MASK]!", ["Here tea!"]),
        ("[MASK] a", "b [MASK]", ["tea a", "b tea"]),
    ],
)
def test_only_the_mask_is_replaced(text: str, pair: str | None, expected: list[str], mlm: Model) -> None:
    (record,) = tasks.fill_mask(mlm, [text], [pair], targets=["tea"])
    assert [mask["predictions"][0]["sequence"] for mask in record["masks"]] == expected


def test_a_continuation_is_glued_to_a_letter_only(mlm: Model) -> None:
    (record,) = tasks.fill_mask(mlm, ["play[MASK] is [MASK]"], targets=["##ing"])
    assert [mask["predictions"][0]["sequence"] for mask in record["masks"]] == [
        "playing is [MASK]",
        "play[MASK] is ##ing",
    ]
    assert record["masks"][0]["predictions"][0]["token_str"] == "##ing"


def test_targets_are_ranked_and_keep_their_share_of_the_vocabulary(mlm: Model) -> None:
    text = "She poured a cup of hot [MASK]."
    everything = {
        one["token_str"]: one["score"]
        for one in next(tasks.fill_mask(mlm, [text], top_k=10_000))["masks"][0]["predictions"]
    }
    (record,) = tasks.fill_mask(mlm, [text], targets=["Tea", "coffee", "tea", "milk", "water", "bread", "cat"])
    found = {one["token_str"]: one["score"] for one in record["masks"][0]["predictions"]}
    assert found == pytest.approx({word: everything[word] for word in found})
    assert set(found) == {"tea", "coffee", "milk", "water", "bread", "cat"}
    assert list(found.values()) == sorted(found.values(), reverse=True)
    (best,) = tasks.fill_mask(mlm, [text], targets=["tea", "coffee", "cat"], top_k=2)
    assert len(best["masks"][0]["predictions"]) == 2


def test_a_target_of_several_pieces_is_chained(mlm: Model) -> None:
    """p(un | _ _ _) · p(##believ | un _ _) · p(##able | un ##believ _), each mask of the text by itself."""
    text = "An [MASK] cat and [MASK]"
    (record,) = tasks.fill_mask(mlm, [text], targets=["unbelievable", "tea"])
    tokenizer = mlm.tokenizer
    (tokens,) = tokenizer.encode([text])
    target = [tokenizer.id_of(piece) for piece in ("un", "##believ", "##able")]
    for mask in record["masks"]:
        at = mask["position"]
        total: Any = 0.0
        for filled in range(3):
            slots = [*target[:filled], *[tokenizer.mask_id] * (3 - filled)]
            ids = [*tokens.ids[:at], *slots, *tokens.ids[at + 1 :]]
            total += log_probabilities(mlm, ids)[at + filled, target[filled]]  # type: ignore[arg-type]
        (found,) = [one for one in mask["predictions"] if one["token_str"] == "unbelievable"]
        assert math.log(found["score"]) == pytest.approx(total, abs=1e-5)
        assert found["pieces"] == ["un", "##believ", "##able"]
        assert found["token"] == target
    assert record["masks"][1]["predictions"][-1]["sequence"].startswith("An [MASK] cat and ")
    assert "pieces" not in next(one for one in record["masks"][0]["predictions"] if one["token_str"] == "tea")


def test_a_target_of_several_words_keeps_them_apart(mlm: Model) -> None:
    (record,) = tasks.fill_mask(mlm, ["a [MASK]."], targets=[" The  king's CAT", "unbelievable tea", "##able"])
    found = {one["token_str"]: one["sequence"] for one in record["masks"][0]["predictions"]}
    sequences = {
        "the king's cat": "a the king's cat.",
        "unbelievable tea": "a unbelievable tea.",
        "##able": "a ##able.",
    }
    assert found == sequences


def test_an_added_token_that_takes_the_spaces_around_it_gives_them_back(tmp_path: Path) -> None:
    folder = make(tmp_path / "model", head="mlm", tokenizer="json")
    settings = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    king = {"id": settings["model"]["vocab"]["king"], "content": "king", "lstrip": True, "rstrip": True}
    settings["added_tokens"].append({**king, "single_word": False, "normalized": False, "special": False})
    (folder / "tokenizer.json").write_text(json.dumps(settings), encoding="utf-8")
    (record,) = tasks.fill_mask(bertcli.load(folder), ["a [MASK]."], targets=["tea king cat"])
    assert [one["token_str"] for one in record["masks"][0]["predictions"]] == ["tea king cat"]


@pytest.mark.parametrize("target", ["☃☃☃", "[UNK]", ""])
def test_a_target_the_vocabulary_cannot_spell(target: str, mlm: Model) -> None:
    with pytest.raises(BertcliError, match="unknown to the vocabulary"):
        tasks.fill_mask(mlm, ["[MASK]"], targets=["tea", target])
    with pytest.raises(BertcliError, match="no targets"):
        tasks.fill_mask(mlm, ["[MASK]"], targets=[])


def test_joint_fillings_against_every_combination(mlm: Model) -> None:
    text, words = "The [MASK] drank [MASK].", ["tea", "cat", "king", "unbelievable"]
    (record,) = tasks.fill_mask(mlm, [text], targets=words, joint=True, top_k=16)
    expected = {}
    for first, second in itertools.product(words, repeat=2):
        half = next(tasks.fill_mask(mlm, [text], targets=[first]))["masks"][0]["predictions"][0]
        rest = next(tasks.fill_mask(mlm, [half["sequence"]], targets=[second]))["masks"][0]["predictions"][0]
        expected[rest["sequence"]] = half["score"] * rest["score"]
    one, two = (mask["predictions"] for mask in record["masks"])
    assert [a["sequence"] for a in one] == [b["sequence"] for b in two]
    assert [a["score"] for a in one] == [b["score"] for b in two]
    found = {a["sequence"]: a["score"] for a in one}
    assert found == pytest.approx(expected, rel=1e-4)
    assert list(found.values()) == sorted(found.values(), reverse=True)


def test_one_mask_jointly_is_one_mask(mlm: Model) -> None:
    (alone,), (joint,) = (list(tasks.fill_mask(mlm, ["a [MASK]"], joint=joint)) for joint in (False, True))
    assert alone == joint


def test_masks_have_to_be_there(mlm: Model, made: Made) -> None:
    with pytest.raises(BertcliError, match=r"There is no \[MASK\] in text 1 \('none'\)"):
        list(tasks.fill_mask(mlm, ["[MASK]", "none"]))
    with pytest.raises(BertcliError, match=r"1 \[MASK\] of text 0 .* lie beyond the cut"):
        list(tasks.fill_mask(mlm, ["a [MASK] b [MASK]"], max_length=5))
    with pytest.raises(BertcliError, match="fill-mask needs a masked-language-model head"):
        tasks.fill_mask(bertcli.load(made()), ["[MASK]"])


@pytest.mark.parametrize(("joint", "fits", "too_long"), [(False, 42, 43), (True, 40, 41)])
def test_targets_need_room_in_the_place_of_masks(mlm: Model, joint: bool, fits: int, too_long: int) -> None:
    """Of 48 positions two are [CLS] and [SEP], two the masks; "unbelievable" takes two more in one, four in both."""
    assert len(mlm.tokenizer.pieces_of("unbelievable")) == 3
    texts = ["a " * count + "[MASK] [MASK]" for count in (fits, too_long, 1)]
    how: dict[str, Any] = {"targets": ["tea", "unbelievable"], "joint": joint}
    with pytest.raises(
        BertcliError, match=r"A target of 3 pieces makes text 1 .* longer than this model's 48 positions"
    ):
        list(tasks.fill_mask(mlm, texts, **how))
    one, two, three = tasks.fill_mask(mlm, texts, **how, keep_going=True)
    assert "longer than this model's 48 positions" in two["error"]
    for record, text in ((one, texts[0]), (three, texts[2])):
        (first, _) = record["masks"]
        assert len({found["sequence"] for found in first["predictions"]}) == 2, text


# --------------------------------------------------------------------------------------------------------------- score


def test_score_masks_each_token_in_turn(mlm: Model) -> None:
    text = "The cat sat [SEP] un"
    (record,) = tasks.score(mlm, [text])
    (tokens,) = mlm.tokenizer.encode([text])
    expected = []
    for position, id in enumerate(tokens.ids):
        if id not in (mlm.tokenizer.cls_id, mlm.tokenizer.sep_id):
            ids = [*tokens.ids]
            ids[position] = mlm.tokenizer.mask_id
            expected.append((mlm.tokenizer.piece(id), log_probabilities(mlm, ids)[position, id]))
    assert (
        [token["token"] for token in record["tokens"]]
        == [piece for piece, _ in expected]
        == ["the", "cat", "sat", "un"]
    )
    found = [token["log_prob"] for token in record["tokens"]]
    np.testing.assert_allclose(found, [value for _, value in expected], rtol=0, atol=1e-5)
    assert record["loss"] == pytest.approx(-np.mean(found))
    assert record["pseudo_perplexity"] == pytest.approx(math.exp(record["loss"]))


def test_the_loss_at_the_masks(mlm: Model) -> None:
    """L = -1/|M| Σ log ŷ_i[y_i], all masks in one pass."""
    (record,) = tasks.score(mlm, ["The [MASK] sat on the [MASK]."], target="The cat sat on the mat.")
    (tokens,), (truth,) = (mlm.tokenizer.encode([text]) for text in ("The [MASK] sat on the [MASK].", record["text"]))
    ids = [mlm.tokenizer.id_of(word) for word in ("cat", "mat")]
    values = log_probabilities(mlm, tokens.ids)[[2, 6], ids]  # type: ignore[index]
    assert truth.ids == tokens.ids
    assert [token["token"] for token in record["tokens"]] == ["cat", "mat"]
    np.testing.assert_allclose([token["log_prob"] for token in record["tokens"]], values, rtol=0, atol=1e-5)
    assert record["loss"] == pytest.approx(-values.mean(), abs=1e-5)


@pytest.mark.parametrize("target", ["The dog", "The cat sat down", "A cat sat", "The unbelievable sat"])
def test_a_target_has_to_match_token_by_token(target: str, mlm: Model) -> None:
    with pytest.raises(BertcliError, match="does not match text 0"):
        list(tasks.score(mlm, ["The [MASK] sat"], target=target))


def test_a_mask_has_to_have_a_true_word(mlm: Model) -> None:
    with pytest.raises(BertcliError, match=r"There is a \[MASK\] in the target or in the second text of text 0"):
        list(tasks.score(mlm, ["The [MASK] sat"], "a [MASK]", target="The cat sat"))
    with pytest.raises(BertcliError, match=r"There is a \[MASK\] in the target"):
        list(tasks.score(mlm, ["The [MASK] [MASK]"], target="The cat [MASK]"))


def test_a_target_needs_masks_within_the_limit(mlm: Model) -> None:
    with pytest.raises(BertcliError, match=r"no \[MASK\] in text 0"):
        list(tasks.score(mlm, ["The cat"], target="The cat"))
    with pytest.raises(BertcliError, match="beyond the cut"):
        list(tasks.score(mlm, ["a b c [MASK]"], target="a b c d", max_length=4))
    (record,) = tasks.score(mlm, ["a [MASK] c d"], target="a b c d", max_length=5)
    assert (record["truncated"], len(record["tokens"])) == (True, 1)


def test_an_empty_text_has_no_loss(mlm: Model) -> None:
    (record,) = tasks.score(mlm, [""])
    assert (record["tokens"], record["loss"], record["pseudo_perplexity"]) == ([], None, None)


# --------------------------------------------------------------------------------------------------------------- damage


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_damaged_weights_are_reported_by_every_task(value: float, tmp_path: Path) -> None:
    model = bertcli.load(damaged(tmp_path, value))
    for run in (
        lambda: tasks.encode(model, ["tea"]),
        lambda: tasks.encode(model, ["tea"], pooling="pooler", normalize=True),
        lambda: list(tasks.encode_blocks(model, ["tea"], pooling="none")),
        lambda: list(tasks.classify(model, ["tea"], "coffee")),
        lambda: list(tasks.fill_mask(model, ["[MASK]"])),
        lambda: list(tasks.score(model, ["tea"])),
    ):
        with pytest.raises(BertcliError, match="the weights are damaged"):
            run()


def test_one_piece_that_is_infinitely_improbable_is_damage_too(tmp_path: Path) -> None:
    model = bertcli.load(damaged(tmp_path, -math.inf, "cls.predictions.bias"))
    with pytest.raises(BertcliError, match="the weights are damaged"):
        model.fill_mask(["[MASK]"])


def damaged(folder: Path, value: float, tensor: str = "bert.encoder.layer.1.output.LayerNorm.bias") -> Path:
    """A checkpoint with one bad number: by default in a norm of its last layer."""
    make(folder, head="pretraining")
    file = folder / "model.safetensors"
    data = bytearray(file.read_bytes())
    length = int.from_bytes(data[:8], "little")
    header = json.loads(data[8 : 8 + length])
    start = 8 + length + header[tensor]["data_offsets"][0]
    data[start : start + 4] = np.float32(value).tobytes()
    file.write_bytes(bytes(data))
    return folder
