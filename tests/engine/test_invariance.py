"""A text's numbers do not depend on how its checkpoint is stored, what it is batched with, or who else is asking."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from conftest import Made
from helpers.checkpoints import Sentence
from helpers.vocabulary import WORDS
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from reference import cases

import bertcli
from bertcli.engine.threads import set_thread_count
from bertcli.tasks.encode import Pooling
from bertcli.tracing.dispatch import Array

LIMIT = 1e-6  # of a vector's largest number
LIMIT_OF_A_TOKEN = 2e-6  # of single tokens' numbers, which nothing averages: [CLS], and what max pooling chooses
words = st.sampled_from(WORDS.split())
texts_of_words = st.lists(words, max_size=60).map(" ".join)
several_texts = st.lists(texts_of_words, min_size=1, max_size=12)
reuse = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def change(found: Array, expected: Array) -> float:
    """The largest difference between two vectors [text, width], as a share of the largest number of a vector."""
    return float((np.abs(found - expected).max(axis=1) / np.abs(expected).max(axis=1)).max())


@pytest.mark.parametrize(
    "habit",
    [
        {"naming": "plain"},
        {"naming": "gamma_beta"},
        {"naming": "plain_gamma_beta"},
        {"shards": 4},
        {"position_ids_buffer": True},
        {"tied": "stored"},
        {"decoder_bias": "decoder"},
        {"decoder_bias": "both"},
        {"tokenizer": "json"},
    ],
)
def test_invariance_to_how_a_checkpoint_is_stored(habit: dict[str, object], made: Made) -> None:
    one, other = bertcli.load(made(head="pretraining")), bertcli.load(made(head="pretraining", **habit))
    assert np.array_equal(one.encode(cases.TEXTS, pooling="pooler"), other.encode(cases.TEXTS, pooling="pooler"))
    assert list(one.fill_mask(cases.MASKED_TEXTS)) == list(other.fill_mask(cases.MASKED_TEXTS))
    first, second = zip(*cases.PAIRS, strict=True)
    assert list(one.classify(first, second)) == list(other.classify(first, second))


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "lasttoken", "pooler"])
@given(texts=several_texts, data=st.data())
@reuse
def test_invariance_to_batch_order_and_threads(
    pooling: Pooling, texts: list[str], data: st.DataObject, made: Made
) -> None:
    model = bertcli.load(made(sizes=cases.ODD))
    alone = np.concatenate([model.encode([text], pooling=pooling) for text in texts])
    order = data.draw(st.permutations(range(len(texts))))
    batch_tokens = data.draw(st.sampled_from([None, 1, 7, 50, 100_000]))
    set_thread_count(data.draw(st.integers(1, 3)))
    try:
        together = model.encode([texts[i] for i in order], pooling=pooling, batch_tokens=batch_tokens)
    finally:
        set_thread_count(None)
    assert change(together, alone[order]) <= (LIMIT if pooling == "mean" else LIMIT_OF_A_TOKEN)


@given(lengths=st.lists(st.integers(1, 48), min_size=1, max_size=6), spare=st.integers(0, 5))
@reuse
def test_invariance_to_padding(lengths: list[int], spare: int, made: Made) -> None:
    model = bertcli.load(made(sizes=cases.ODD))
    batch = cases.mixed_batch(model.config.vocab_size, 2, sum(lengths), tuple(lengths))
    padding = [(0, 0), (0, min(spare, 48 - max(lengths)))]
    padded = model.forward(*(np.pad(values, padding) for values in batch))
    for row, length in enumerate(lengths):
        alone = model.forward(batch.ids[row : row + 1, :length], batch.segments[row : row + 1, :length])
        assert change(padded[row, :length], alone[0]) <= LIMIT_OF_A_TOKEN


def test_invariance_among_threads_that_share_a_model(made: Made) -> None:
    model = bertcli.load(made(sentence=Sentence(pooling=("mean", "max"))))
    expected = model.encode(cases.TEXTS)
    with ThreadPoolExecutor(2) as threads:
        for found in threads.map(model.encode, [cases.TEXTS] * 8):
            assert np.array_equal(found, expected)
