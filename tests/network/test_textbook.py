"""The textbook model and section-6 functions against the formulas written out with plain loops in float64."""

from math import erf, exp, log, sqrt, tanh
from typing import Any

import numpy as np
import pytest
from helpers.near import assert_near
from numpy.typing import NDArray

import bertcli
from bertcli.engine.packing import Packed
from bertcli.engine.padded_batch import pack_padded
from bertcli.functional import feed_forward, layer_norm, masked_lm_loss, scaled_dot_product_attention, softmax
from bertcli.model import Model
from bertcli.models.textbook import TextbookConfig
from bertcli.network.module import parameters

Numbers = NDArray[np.float64]
IDS = [3, 17, 4, 9, 9, 1]


def small(heads: str, attention_heads: int = 2) -> Model:
    """A textbook model of d = 8, d_ff = 4d, with weights large enough to tell formulas apart."""
    config = TextbookConfig(
        vocab_size=20, hidden_size=8, num_hidden_layers=2, num_attention_heads=attention_heads, intermediate_size=32,
        max_position_embeddings=10,
    )  # fmt: skip
    shapes = parameters(bertcli.variant(config=config, heads=heads).network)
    rng = np.random.default_rng(5)
    return bertcli.variant(
        config=config, heads=heads, weights={one.path: rng.normal(0, 0.7, one.array.shape) for one in shapes}
    )


def packed(ids: list[int]) -> Packed:
    array = np.array([ids])
    return pack_padded(array, np.zeros_like(array), np.ones(array.shape, dtype=bool))[0]


def weights_of(model: Model) -> dict[str, Numbers]:
    return {one.path: one.array.astype(np.float64) for one in parameters(model.network)}


def softmax_by_hand(row: Numbers) -> Numbers:
    powers = [exp(value - max(row)) for value in row]
    return np.array([power / sum(powers) for power in powers])


def norm_by_hand(x: Numbers) -> Numbers:
    return np.array([(row - row.mean()) / sqrt(row.var() + 1e-5) for row in x])


def encode_by_hand(model: Model, ids: list[int]) -> Numbers:
    """Section 4, one head and one token at a time."""
    w = weights_of(model)
    x: Numbers = np.array([w["embeddings.token"][i] + w["embeddings.position"][n] for n, i in enumerate(ids)])
    for layer in range(model.config.num_hidden_layers):
        at = f"encoder.layers.{layer}."
        heads = []
        for head in range(model.config.num_attention_heads):
            q, k, v = (x @ w[f"{at}attention.{name}"][head] for name in ("query", "key", "value"))
            a = np.array([softmax_by_hand(np.array([qi @ kj for kj in k]) / sqrt(q.shape[1])) for qi in q])
            heads.append(a @ v)
        x = norm_by_hand(x + np.concatenate(heads, axis=1))
        hidden = np.maximum(0, x @ w[f"{at}feed_forward.intermediate"] + w[f"{at}feed_forward.intermediate_bias"])
        x = norm_by_hand(x + hidden @ w[f"{at}feed_forward.output"] + w[f"{at}feed_forward.output_bias"])
    return x


@pytest.mark.parametrize("attention_heads", [1, 2, 8])
def test_the_textbook_forward_pass_is_the_formula(attention_heads: int) -> None:
    model = small("none", attention_heads)
    assert_near(model.forward([IDS])[0], encode_by_hand(model, IDS), 1e-5)


def test_the_class_vector_is_a_softmax_over_its_entries() -> None:
    model = small("pooler")
    assert model.network.pooler is not None
    pooled = model.network.pooler(model.forward([IDS])[:, 0])
    by_hand = softmax_by_hand(
        np.array([tanh(v) for v in encode_by_hand(model, IDS)[0] @ weights_of(model)["pooler.final"]])
    )
    assert_near(pooled[0], by_hand, 1e-6)
    assert pooled.sum() == pytest.approx(1, abs=1e-6)


def test_the_masked_lm_loss_is_the_sum_over_the_masked_positions() -> None:
    """Section 5: one head, d_ff = 4d, ŷ_i = softmax(W H_i + b), L = - Σ log ŷ_i[y_i]."""
    model, masked, true = small("mlm", attention_heads=1), [1, 4], [7, 12]
    assert model.network.mlm is not None
    w, states = weights_of(model), encode_by_hand(model, IDS)
    by_hand = -sum(
        log(softmax_by_hand(w["mlm.weight"] @ states[i] + w["mlm.bias"])[y]) for i, y in zip(masked, true, strict=True)
    )
    logits = model.network.mlm(model.network(packed(IDS), np.array(masked)))
    assert logits.shape == (2, 20)
    assert masked_lm_loss(logits, true) == pytest.approx(by_hand, abs=1e-5)


def test_sentences_of_other_lengths_change_nothing() -> None:
    model = small("none")
    ids, mask = np.zeros((3, 6), dtype=int), np.zeros((3, 6), dtype=int)
    for row, length in enumerate((6, 2, 4)):
        ids[row, :length], mask[row, :length] = IDS[:length], 1
    together = model.forward(ids, mask=mask)
    for row, length in enumerate((6, 2, 4)):
        assert_near(together[row, :length], model.forward([IDS[:length]])[0], 1e-6)
        assert not together[row, length:].any()


def test_softmax_rows_sum_to_one_at_any_size_of_number() -> None:
    x = np.array([[1e4, 1e4 + 1, -1e4], [-3e38, 0, 3e38], [0, 0, 0]], dtype=np.float32)
    before = x.copy()
    y = softmax(x)
    assert_near(y.sum(axis=-1), 1, 1e-6)
    assert_near(y[0], [1 / (1 + exp(1)), 1 / (1 + exp(-1)), 0], 1e-6)
    np.testing.assert_array_equal(x, before)


def test_scaled_dot_product_attention_on_plain_arrays() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.normal(size=(5, 4)) for _ in range(3))
    by_hand = np.array([softmax_by_hand(k @ row / 2) for row in q]) @ v
    assert_near(scaled_dot_product_attention(q, k, v), by_hand, 1e-6)
    mask = np.tril(np.ones((5, 5)))
    mask[3] = 0
    masked = scaled_dot_product_attention(q, k, v, mask)
    assert_near(masked[0], v[0], 1e-6)
    np.testing.assert_array_equal(masked[3], 0)
    assert_near(masked[4], by_hand[4], 1e-6)


@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_feed_forward_on_plain_arrays(activation: str) -> None:
    rng = np.random.default_rng(1)
    x, w1, b1, w2, b2 = (rng.normal(size=size) for size in ((5, 4), (4, 8), (8,), (8, 4), (4,)))
    act: Any = {"relu": lambda v: max(0.0, v), "gelu": lambda v: v / 2 * (1 + erf(v / sqrt(2)))}[activation]
    by_hand = np.vectorize(act)(x @ w1 + b1) @ w2 + b2
    result = feed_forward(x, w1, b1, w2, b2, activation)
    assert result.shape == (5, 4)
    assert_near(result, by_hand, 2e-6)


def test_layer_norm_gives_unit_variance() -> None:
    x = np.random.default_rng(2).normal(3, 5, size=(5, 4))
    y = layer_norm(x, eps=1e-5)
    assert_near(y.mean(axis=-1), 0, 1e-6)
    assert_near(y.var(axis=-1), 1, 1e-4)
    assert_near(layer_norm(x, 1e-5, weight=[2, 2, 2, 2], bias=[1, 1, 1, 1]), 2 * y + 1, 1e-5)
