"""The stream of texts that wait: whose turn it is, what a batch has, what an error is of."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from bertcli.errors import BertcliError
from bertcli.files.texts import Item, Text
from bertcli.serve.stream import Call, Stream
from bertcli.tasks.compute.task import START, Records, Window


@dataclass
class Tokens:
    """So many."""

    count: int

    @property
    def ids(self) -> Sequence[int]:
        return range(self.count)


@dataclass(eq=False)
class Echo:
    """A task whose records are the texts; it waits for `open`, notes its batches, and fails at a text "bad"."""

    open: threading.Event = field(default_factory=threading.Event)
    batches: list[list[str]] = field(default_factory=list)

    def compute(self, window: Window) -> Records:
        assert self.open.wait(30)
        texts = [item.text.text for item in window.items]
        assert [item.index for item in window.items] == [*range(len(texts))]
        self.batches.append(texts)
        if "bad" in texts:
            raise BertcliError("a bad text")
        return Records(START, [{"text": text} for text in texts])


class Waiting:
    """A call and its outcome."""

    def __init__(self, stream: Stream, task: Echo, *texts: str, tokens: int = 10) -> None:
        items = [Item(index, Text(text), Tokens(tokens)) for index, text in enumerate(texts)]  # type: ignore[arg-type]
        self.call = Call(task, items)  # type: ignore[arg-type]
        stream.add(self.call)

    def result(self) -> list[Any]:
        return self.call.future.result(30)


@pytest.fixture
def task() -> Echo:
    return Echo()


def begun(stream: Stream, task: Echo) -> Waiting:
    """A call that is being computed, and waits for the task to open; what comes after it has to wait."""
    first = Waiting(stream, task, "first")
    while stream.size:
        pass
    return first


def test_what_arrives_while_a_batch_runs_is_the_next_one(task: Echo) -> None:
    stream = Stream(1000)
    first = begun(stream, task)
    others = [Waiting(stream, task, *texts) for texts in (("a", "b"), ("c",), ("d", "e", "f"))]
    task.open.set()
    assert first.result() == [{"text": "first"}]
    assert [[value["text"] for value in one.result()] for one in others] == [["a", "b"], ["c"], ["d", "e", "f"]]
    assert task.batches == [["first"], ["a", "c", "d", "b", "e", "f"]]
    stream.end()


def test_a_long_request_takes_turns_with_short_ones(task: Echo) -> None:
    stream = Stream(40)
    first = begun(stream, task)
    long = Waiting(stream, task, *"abcdefgh")
    short = Waiting(stream, task, "x")
    task.open.set()
    assert [value["text"] for value in long.result()] == [*"abcdefgh"]
    assert short.result() == [{"text": "x"}]
    first.result()
    assert task.batches == [["first"], ["a", "x", "b", "c"], ["d", "e", "f", "g"], ["h"]]
    stream.end()


def test_a_batch_has_no_more_tokens_than_it_may(task: Echo) -> None:
    """But for a text that alone has more."""
    stream = Stream(25)
    first = begun(stream, task)
    some, long = Waiting(stream, task, *"abc"), Waiting(stream, task, "x", tokens=30)
    task.open.set()
    for one in (first, some, long):
        one.result()
    assert task.batches == [["first"], ["a"], ["x"], ["b", "c"]]
    stream.end()


def test_other_tasks_have_their_turn_in_between(task: Echo) -> None:
    stream = Stream(20)
    other = Echo(task.open, task.batches)
    first = begun(stream, task)
    long, of_other = Waiting(stream, task, *"abcd"), Waiting(stream, other, "X")
    task.open.set()
    for one in (first, long, of_other):
        one.result()
    assert task.batches == [["first"], ["a", "b"], ["X"], ["c", "d"]]
    stream.end()


def test_an_error_is_of_the_text_that_has_it(task: Echo) -> None:
    stream = Stream(1000)
    first = begun(stream, task)
    good, bad = Waiting(stream, task, "a", "b"), Waiting(stream, task, "c", "bad")
    task.open.set()
    first.result()
    assert [value["text"] for value in good.result()] == ["a", "b"]
    assert bad.result()[0] == {"text": "c"}
    assert isinstance(bad.result()[1], BertcliError)
    stream.end()


def test_texts_of_a_client_that_has_left_are_dropped(task: Echo) -> None:
    stream = Stream(1000)
    first = begun(stream, task)
    left, stays = Waiting(stream, task, "left"), Waiting(stream, task, "stays")
    left.call.future.cancel()
    assert stream.size == 1
    task.open.set()
    assert stays.result() == [{"text": "stays"}]
    first.result()
    assert task.batches == [["first"], ["stays"]]
    stream.end()


def test_what_waits_at_the_end_is_computed(task: Echo) -> None:
    stream = Stream(10)
    first, last = begun(stream, task), Waiting(stream, task, "a", "b")
    threading.Timer(0.1, task.open.set).start()
    stream.end()
    assert first.result() + last.result() == [{"text": "first"}, {"text": "a"}, {"text": "b"}]
