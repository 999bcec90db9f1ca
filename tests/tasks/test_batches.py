"""Batches of texts on several threads: of one size, and really at the same time."""

import itertools
import threading
from collections.abc import Callable, Iterator

import pytest
from helpers.deadlines import SECONDS
from hypothesis import given
from hypothesis import strategies as st

from bertcli.engine import blas, threads
from bertcli.engine.packing import LEAST_TOKENS
from bertcli.tasks.parts.masked import MaskedSentence
from bertcli.tasks.running.batches import even_batches, in_micro_batches


@pytest.fixture(autouse=True)
def set_threads() -> Iterator[Callable[[int], None]]:
    """Sets the number of threads, in one test."""
    yield threads.set_thread_count
    threads.set_thread_count(None)


@pytest.mark.skipif(blas.threads() is None, reason="this library of products cannot be told to use one thread")
@pytest.mark.parametrize("count", [2, 3])
def test_batches_every_thread_has_a_batch_at_the_same_time(count: int, set_threads: Callable[[int], None]) -> None:
    set_threads(count)
    every = threading.Barrier(count, timeout=SECONDS)

    def run(batch: list[int]) -> list[int]:
        every.wait()  # breaks unless all threads are here
        return batch

    sentences = [MaskedSentence([0] * 16, [0] * 16, ()) for _ in range(count * LEAST_TOKENS // 16)]
    numbers = list(range(len(sentences)))
    assert in_micro_batches(sentences, 100 * LEAST_TOKENS, run, extra_keys=numbers) == numbers


def test_batches_compute_equal_sentences_once() -> None:
    computed = []

    def run(batch: list[int]) -> list[list[int]]:
        computed.extend(batch)
        return [[index] for index in batch]

    every = [(5, 6), (5, 0), (5, 6), (7, 0), (5, 0), (5, 6)]
    sentences = [MaskedSentence([id, 1], [0, segment], ()) for id, segment in every]
    found = in_micro_batches(sentences, None, run)
    assert sorted(computed) == [0, 1, 3]
    assert found == [[0], [1], [0], [3], [1], [0]]
    found[0].append(1)  # what a program does to one result changes no other
    assert found[2] == [0]
    computed.clear()
    assert in_micro_batches(sentences, None, run, extra_keys=[0, 0, 1, 0, 1, 1]) == [[0], [1], [2], [3], [4], [2]]
    assert sorted(computed) == [0, 1, 2, 3, 4]


@given(
    lengths=st.lists(st.integers(1, 100), min_size=1, max_size=200),
    limit=st.integers(1000, 4000),
    count=st.integers(1, 8),
)
def test_batches_come_to_an_end_together(lengths: list[int], limit: int, count: int) -> None:
    threads.set_thread_count(count)
    batches = even_batches(lengths, limit)
    assert sorted(itertools.chain(*batches)) == list(range(len(lengths)))
    sizes = [sum(lengths[i] for i in batch) for batch in batches]
    assert max(sizes) <= limit
    assert len(batches) >= min(count, sum(lengths) // LEAST_TOKENS)
    assert max(sizes) - min(sizes) <= 2 * max(lengths)
