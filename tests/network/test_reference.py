"""bertcli's numbers against those recorded from transformers and sentence-transformers (see reference/record.py)."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Made
from helpers.checkpoints import ACTIVATIONS, DTYPES, HEADS, NAMINGS
from helpers.json_files import read_json
from numpy.typing import NDArray
from reference import cases
from reference.outputs import of_bertcli

import bertcli
from bertcli.tasks.encode import Pooling

ATOL = 1e-5  # what the issue promises, absolute
HERE = Path(__file__).parents[1] / "reference"
NETWORKS = dict([*cases.network_cases(), *cases.bare_cases().items()])


class Goldens:
    """The recorded arrays and answers, read when first asked for."""

    def __init__(self) -> None:
        self.arrays = {name: np.load(HERE / f"{name}.npz") for name in ("networks", "shapes", "embeddings")}
        self.answers = read_json(HERE / "answers.json")
        self.tokenizations = read_json(HERE / "tokenizations.json")


@pytest.fixture(scope="module")
def goldens() -> Iterator[Goldens]:
    found = Goldens()
    yield found
    for arrays in found.arrays.values():
        arrays.close()


def assert_close(found: Any, expected: Any, what: str = "") -> None:
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape, what
    np.testing.assert_allclose(found, expected, rtol=0, atol=ATOL, err_msg=what)


# ------------------------------------------------------------------------------------------------------- the network


def test_the_cases_cover_every_two_of_head_activation_dtype_and_naming() -> None:
    habits = [habit for _, habit in cases.network_cases()]
    factors = {"head": HEADS, "hidden_act": ACTIVATIONS, "dtype": DTYPES, "naming": NAMINGS}
    for one, ones in factors.items():
        for other, others in factors.items():
            met = {(habit[one], habit[other]) for habit in habits}
            assert one == other or len(met) == len(ones) * len(others), (one, other)


@pytest.mark.parametrize("name", NETWORKS)
def test_states_and_heads(name: str, made: Made, goldens: Goldens) -> None:
    model = bertcli.load(made(**NETWORKS[name]))
    salt = list(NETWORKS).index(name)
    batch = cases.mixed_batch(model.config.vocab_size, model.config.segment_count, salt)
    found = of_bertcli(model, batch).narrowed(batch)
    recorded = goldens.arrays["networks"]
    assert set(found) == {key.removeprefix(f"{name}.") for key in recorded.files if key.startswith(f"{name}.")}
    for part, value in found.items():
        assert_close(value, recorded[f"{name}.{part}"], part)


def test_masks_with_padding_on_either_side_and_with_holes(made: Made, goldens: Goldens) -> None:
    model = bertcli.load(made(**cases.MASKS))
    batch = cases.masked_batch(model.config.vocab_size)
    found, counted = model.forward(*batch), batch.mask == 1
    assert found.dtype == np.float32
    assert_close(found[counted], goldens.arrays["shapes"]["masks"][counted])
    assert np.isfinite(found).all()


def test_a_sentence_without_any_token_that_counts_is_finite(made: Made) -> None:
    model = bertcli.load(made(**cases.MASKS))
    batch = cases.masked_batch(model.config.vocab_size)
    batch.mask[1] = 0
    assert np.isfinite(model.forward(*batch)).all()


LENGTHS = [(name, length) for name, (_, lengths) in cases.LENGTHS.items() for length in lengths]


@pytest.mark.parametrize(("name", "length"), LENGTHS)
def test_lengths_from_two_to_the_limit(name: str, length: int, made: Made, goldens: Goldens) -> None:
    model = bertcli.load(made(**cases.LENGTHS[name][0]))
    batch = cases.mixed_batch(model.config.vocab_size, 2, length, (length,))
    found = model.forward(batch.ids, batch.segments)
    assert_close(found[0, cases.length_rows(length)], goldens.arrays["shapes"][f"{name}.{length}"])


def test_forward_without_segments_takes_segment_zero(made: Made) -> None:
    model = bertcli.load(made(**cases.MASKS))
    ids = cases.masked_batch(model.config.vocab_size).ids
    assert np.array_equal(model.forward(ids), model.forward(ids, np.zeros_like(ids), np.ones_like(ids)))


# --------------------------------------------------------------------------------------------------- texts to numbers


def embedding_cases() -> list[tuple[str, Any, str]]:
    """(pooling, layer, name of the golden)"""
    return [("cls", -1, "cls"), ("max", -1, "max"), ("pooler", -1, "pooler"), ("mean", -1, "mean.2")] + [
        ("mean", layer, f"mean.{layer}") for layer in (0, 1, 2)
    ]


@pytest.mark.parametrize(("pooling", "layer", "golden"), embedding_cases())
@pytest.mark.parametrize("kind", ["texts", "pairs"])
def test_encode(kind: str, pooling: Pooling, layer: int, golden: str, made: Made, goldens: Goldens) -> None:
    model = bertcli.load(made(head="model", seed=209))
    texts, pairs = (cases.TEXTS, None) if kind == "texts" else zip(*cases.PAIRS, strict=True)
    found = model.encode(texts, pairs, pooling=pooling, layer=layer)
    assert found.dtype == np.float32
    assert_close(found, goldens.arrays["embeddings"][f"{kind}.{golden}"])


@pytest.mark.parametrize("name", cases.SENTENCES)
def test_sentence_vectors(name: str, made: Made, goldens: Goldens) -> None:
    model = bertcli.load(made(**cases.SENTENCES[name]))
    assert_close(model.encode(cases.TEXTS), goldens.arrays["embeddings"][f"sentence.{name}"])


@pytest.mark.parametrize("name", cases.CLASSIFIERS)
def test_classify(name: str, made: Made, goldens: Goldens) -> None:
    model = bertcli.load(made(**cases.CLASSIFIERS[name]))
    first, second = zip(*cases.PAIRS, strict=True)
    records = [*model.classify(cases.TEXTS), *model.classify(first, second)]
    expected = goldens.answers["classify"][name]
    assert len(records) == len(expected)
    for record, labels in zip(records, expected, strict=True):
        assert [one["label"] for one in record["labels"]] == [one["label"] for one in labels]
        assert_close([one["score"] for one in record["labels"]], [one["score"] for one in labels], record["text"])


def test_next_sentence(made: Made, goldens: Goldens) -> None:
    model = bertcli.load(made(**cases.NEXT_SENTENCE))
    first, second = zip(*cases.PAIRS, strict=True)
    for record, expected in zip(model.classify(first, second), goldens.answers["next_sentence"], strict=True):
        scores = {one["label"]: one["score"] for one in record["labels"]}
        assert_close([scores["is_next"], scores["not_next"]], expected)


def test_fill_mask(made: Made, goldens: Goldens) -> None:
    model = bertcli.load(made(**cases.MASKED_LM))
    records = list(model.fill_mask(cases.MASKED_TEXTS))
    for record, expected in zip(records, goldens.answers["fill_mask"], strict=True):
        assert len(record["masks"]) == len(expected)
        for mask, predictions in zip(record["masks"], expected, strict=True):
            found = mask["predictions"]
            for key in ("token", "token_str"):
                assert [one[key] for one in found] == [one[key] for one in predictions]
            assert_close([one["score"] for one in found], [one["score"] for one in predictions])


def test_fill_mask_among_targets(made: Made, goldens: Goldens) -> None:
    model = bertcli.load(made(**cases.MASKED_LM))
    (record,) = model.fill_mask(cases.MASKED_TEXTS[:1], targets=["tea", "coffee", "un"])
    found = {one["token"]: one["score"] for one in record["masks"][0]["predictions"]}
    expected = {one["token"]: one["score"] for one in goldens.answers["targets"] if one["token_str"] != "##able"}
    assert set(found) == set(expected)
    assert_close([found[token] for token in expected], list(expected.values()))


def test_score(made: Made, goldens: Goldens) -> None:
    model = bertcli.load(made(**cases.MASKED_LM))
    for record, expected in zip(model.score(cases.SCORED_TEXTS), goldens.answers["score"], strict=True):
        assert [one["token"] for one in record["tokens"]] == [token for token, _ in expected]
        if expected:
            assert_close([one["log_prob"] for one in record["tokens"]], [value for _, value in expected])
            loss = -float(np.mean([value for _, value in expected]))
            assert record["loss"] == pytest.approx(loss, abs=ATOL)
            assert record["pseudo_perplexity"] == pytest.approx(np.exp(loss), rel=ATOL)
        else:
            assert record["loss"] is None
            assert record["pseudo_perplexity"] is None


# -------------------------------------------------------------------------------------------------------------- tokens


@pytest.mark.any_kernel
@pytest.mark.parametrize("name", cases.TOKENIZERS)
def test_tokenization(name: str, made: Made, goldens: Goldens) -> None:
    tokenizer = bertcli.load(made(**cases.TOKENIZERS[name])).tokenizer
    found = tokenizer.encode(list(cases.ODD_TEXTS), None, 512)
    for text, tokens, (ids, offsets) in zip(cases.ODD_TEXTS, found, goldens.tokenizations[name], strict=True):
        assert list(tokens.ids) == ids, text
        assert [list(span) for span in tokens.offsets] == offsets, text
        assert list(tokens.segments) == [0] * len(ids)


@pytest.mark.any_kernel
@pytest.mark.parametrize("case", range(len(cases.TRUNCATIONS)))
def test_the_longer_of_two_texts_is_cut_first(case: int, made: Made, goldens: Goldens) -> None:
    first, second, limit = cases.TRUNCATIONS[case]
    text, pair = cases.truncated_pair(first, second)
    (tokens,) = bertcli.load(made()).tokenizer.encode([text], [pair], limit)
    ids, segments = goldens.tokenizations["truncations"][case]
    assert (list(tokens.ids), list(tokens.segments)) == (ids, segments)
    assert tokens.lost == first + second + 3 - len(ids)


# ----------------------------------------------------------------------------------------------------------- attention


class AttentionWeights:
    """A watcher that keeps what every softmax returns."""

    def __init__(self) -> None:
        self.kept: list[NDArray[np.float32]] = []

    def op(self, op: Any, arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        result = op.compute(*arguments, **settings)
        if op.name == "softmax":
            self.kept.append(result.copy())
        return result

    def module(self, module: Any, arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        return module.forward(*arguments, **settings)


def test_attention_weights(made: Made, goldens: Goldens) -> None:
    from bertcli.tracing.dispatch import watching

    model = bertcli.load(made(**cases.ATTENTION))
    batch = cases.mixed_batch(model.config.vocab_size, 2, 1, (9, 5))
    for row, length in enumerate((9, 5)):
        watcher = AttentionWeights()
        with watching(watcher):
            model.forward(batch.ids[row : row + 1, :length], batch.segments[row : row + 1, :length])
        recorded = goldens.arrays["shapes"]["attention"][:, row, :, :length, :length]
        assert_close(np.concatenate(watcher.kept), recorded)
