"""The stream of texts that wait: whose turn it is, what a batch has, what an error is of."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

import bertcli
from bertcli.engine.pauses import between_batches
from bertcli.errors import BertcliError
from bertcli.files.texts import Item, Text
from bertcli.tasks.running.task import START, Records, TokenizedGroup
from bertcli.wings.serve.served_model import Served
from bertcli.wings.serve.stream import TELLING, Busy, QueuedTask, Speed, Stream, TooLarge


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

    def compute(self, group: TokenizedGroup) -> Records:
        assert self.open.wait(30)
        texts = [item.text.text for item in group.items]
        assert [item.index for item in group.items] == [*range(len(texts))]
        self.batches.append(texts)
        if "bad" in texts:
            raise BertcliError("a bad text")
        return Records(START, [{"text": text} for text in texts])


class Waiting:
    """A call and its outcome."""

    def __init__(self, stream: Stream, task: Echo, *texts: str, tokens: int = 10) -> None:
        items = [Item(index, Text(text), Tokens(tokens)) for index, text in enumerate(texts)]  # type: ignore[arg-type]
        self.call = QueuedTask(task, items, [tokens] * len(items))  # type: ignore[arg-type]
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
    assert task.batches == [["first"], ["a", "b", "c", "d", "e", "f"]]
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
    assert task.batches == [["first"], ["a", "b", "x"], ["c", "d", "e", "f"], ["g", "h"]]
    stream.end()


def test_a_batch_has_no_more_tokens_than_it_may(task: Echo) -> None:
    """But for a text that alone has more."""
    stream = Stream(25)
    first = begun(stream, task)
    some, long = Waiting(stream, task, *"abc"), Waiting(stream, task, "x", tokens=30)
    task.open.set()
    for one in (first, some, long):
        one.result()
    assert task.batches == [["first"], ["a", "b"], ["c"], ["x"]]
    stream.end()


def test_other_tasks_have_their_turn_in_between(task: Echo) -> None:
    stream = Stream(20)
    other = Echo(task.open, task.batches)
    first = begun(stream, task)
    long, of_other = Waiting(stream, task, *"abcd"), Waiting(stream, other, "X")
    task.open.set()
    for one in (first, long, of_other):
        one.result()
    assert task.batches == [["first"], ["a"], ["X"], ["b", "c"], ["d"]]
    stream.end()


def test_a_long_request_in_the_batch_of_a_short_one_keeps_its_turn(task: Echo) -> None:
    """Only a batch that it led gives the turn to short ones of other tasks that came later."""
    stream = Stream(40)
    other = Echo(task.open, task.batches)
    first = begun(stream, task)
    waiting = [Waiting(stream, task, "x"), Waiting(stream, task, *"abcdefghij"), Waiting(stream, other, "Y")]
    task.open.set()
    for one in (first, *waiting):
        one.result()
    assert task.batches == [["first"], ["x", "a", "b"], ["c", "d"], ["Y"], ["e", "f", "g", "h"], ["i", "j"]]
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


def test_requests_are_done_in_the_order_in_which_they_came(task: Echo) -> None:
    """A batch has the texts of the oldest ones, and each is answered when its own are done."""
    stream = Stream(100)
    first = begun(stream, task)
    calls = [Waiting(stream, task, *(f"{number} {part}" for part in range(4))) for number in range(30)]
    task.open.set()
    for one in calls:
        one.result()
    first.result()
    texts = [text for batch in task.batches[1:] for text in batch]
    assert texts == [f"{number} {part}" for number in range(30) for part in range(4)]
    assert {len(batch) for batch in task.batches[1:]} == {10}
    stream.end()


def test_a_request_is_answered_before_those_behind_it_are_computed(task: Echo) -> None:
    stream = Stream(40)
    first = begun(stream, task)
    calls = [Waiting(stream, task, str(number), str(number)) for number in range(5)]
    counts: list[int] = []
    for one in calls:
        one.call.future.add_done_callback(lambda _: counts.append(len(task.batches)))
    task.open.set()
    calls[-1].result()
    stream.end()
    assert counts == [2, 2, 3, 3, 4]
    first.result()


def test_large_requests_have_half_of_a_batch_while_small_ones_wait(task: Echo) -> None:
    stream = Stream(100)
    first = begun(stream, task)
    large = [Waiting(stream, task, *[name] * 30) for name in "AB"]
    small = [Waiting(stream, task, *["x"] * 4) for _ in range(5)]
    task.open.set()
    for one in (first, *large, *small):
        one.result()
    counts = [[batch.count(name) for name in "ABx"] for batch in task.batches[1:]]
    assert counts[:4] == [[5, 0, 5], [5, 0, 5], [5, 0, 5], [5, 0, 5]]
    assert [sum(column) for column in zip(*counts, strict=True)] == [30, 30, 20]
    stream.end()


def known(rate: float) -> Speed:
    """The speed of a model that computes so many tokens a second."""
    speed = Speed()
    speed.observe(int(rate), 1.0)
    return speed


def call(task: Echo, tokens: int, speed: Speed, seconds: float) -> QueuedTask:
    """A request of one text that ends in so many seconds."""
    item = Item(0, Text("a"), Tokens(tokens))  # type: ignore[arg-type]
    return QueuedTask(task, [item], [tokens], speed, time.monotonic() + seconds)  # type: ignore[arg-type]


def test_what_cannot_be_done_in_time_is_refused_at_once(task: Echo) -> None:
    """Four fifths of a request's time may be expected to pass before it is done."""
    stream, speed = Stream(100), known(100)
    first = begun(stream, task)
    accepted = [call(task, 100, speed, 10.1) for _ in range(8)]
    for one in accepted:
        stream.add(one)
    with pytest.raises(Busy) as busy:
        stream.add(call(task, 100, speed, 10.1))
    assert 0 < busy.value.seconds < 1.01
    with pytest.raises(Busy) as busy:
        stream.add(call(task, 700, speed, 10.1))
    assert 6 < busy.value.seconds < 7.01
    with pytest.raises(TooLarge) as large:
        stream.add(call(task, 900, speed, 10.1))
    assert large.value.seconds == 9
    task.open.set()
    assert [len(one.future.result(30)) for one in accepted] == [1] * 8
    first.result()
    stream.end()


def test_what_is_promised_falls_faster_than_it_rises() -> None:
    """A batch that was slower weighs a half, one that was faster a fifth."""
    slower, faster = known(100), known(100)
    slower.observe(50, 1.0)
    faster.observe(200, 1.0)
    assert [slower.seconds(600), faster.seconds(600)] == pytest.approx([8, 5])


def test_a_speed_measured_in_a_bad_moment_refuses_nothing_where_nothing_waits(task: Echo) -> None:
    """What was fast may be fast again."""
    stream, speed = Stream(100), known(100)
    for _ in range(10):
        speed.observe(10, 10.0)
    with pytest.raises(TooLarge):
        stream.add(call(task, 900, speed, 10.1))
    one = call(task, 700, speed, 10.1)
    stream.add(one)
    task.open.set()
    assert len(one.future.result(30)) == 1
    stream.end()


def test_a_model_that_is_served_knows_its_speed_before_the_first_request() -> None:
    served = Served(bertcli.load("bert-mini-sentence"), "mini")
    begun = time.perf_counter()
    served.check()
    took = time.perf_counter() - begun
    assert served.speed.rate is not None
    assert served.speed.rate > TELLING / took, "the faster of two runs, which are a part of this time"


@dataclass(eq=False)
class Slow:
    """A task that takes so many seconds for a text, in tenths between which it lets others in."""

    seconds: float
    batches: list[list[str]]

    def compute(self, group: TokenizedGroup) -> Records:
        texts = [item.text.text for item in group.items]
        pause = between_batches.get()
        for _ in range(10):
            if pause is not None:
                pause()
            time.sleep(self.seconds * len(texts) / 10)
        self.batches.append(texts)
        return Records(START, [{"text": text} for text in texts])


def test_a_text_that_takes_long_lets_others_in_and_stops_when_nobody_waits() -> None:
    batches: list[list[str]] = []
    slow, quick = Slow(2.0, batches), Slow(0.0, batches)
    stream = Stream(100)
    long, short = (QueuedTask(task, [item], [cost]) for task, item, cost in (  # type: ignore[arg-type]
        (slow, Item(0, Text("long"), Tokens(5)), 5000), (quick, Item(0, Text("short"), Tokens(5)), 5),  # type: ignore[arg-type]
    ))  # fmt: skip
    stream.add(long)
    while not long.begun:
        pass
    stream.add(short)
    assert short.future.result(30) == [{"text": "short"}]
    assert not long.future.done()
    long.future.cancel()
    begun = time.monotonic()
    assert stream.end(10)
    assert time.monotonic() - begun < 1.0
    assert batches == [["short"]]
