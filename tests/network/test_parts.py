"""Ops, modules, and the seam where they can be watched."""

from threading import Thread
from typing import Any

import numpy as np
import pytest

import bertcli
from bertcli.network.encoder import EncoderLayer, FeedForward
from bertcli.network.module import Parameter, walk
from bertcli.network.ops import linear
from bertcli.tracing.dispatch import Module, Op, watched, watching


class Counter:
    """A watcher that lets everything pass and remembers what came by."""

    def __init__(self) -> None:
        self.seen: list[str] = []

    def op(self, op: Op[Any], arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        self.seen.append(op.name)
        return op.compute(*arguments, **settings)

    def module(self, module: Module, arguments: tuple[Any, ...], settings: dict[str, Any]) -> Any:
        self.seen.append(type(module).__name__)
        return module.forward(*arguments, **settings)


def test_a_signature_refuses_what_does_not_fit() -> None:
    with pytest.raises(ValueError, match="axis in is 4 in one array and 3 in another"):
        linear.signature.sizes(((5, 4), (8, 3), None))
    with pytest.raises(ValueError, match="does not have the axes"):
        linear.signature.sizes(((5,), (8, 3), None))


def test_every_op_and_module_passes_the_seam_and_only_while_watched() -> None:
    network = bertcli.variant("tiny", weights=0).network
    part = network.encoder.layers[0].feed_forward
    assert isinstance(part, FeedForward)
    x = np.ones((3, 128), dtype=np.float32)
    counter = Counter()
    with watching(counter):
        assert watched()
        watched_result = part(x)
    assert counter.seen == ["FeedForward", "Linear", "linear", "Linear", "linear"]
    assert not watched()
    np.testing.assert_array_equal(part(x), watched_result)
    assert len(counter.seen) == 5


def test_one_thread_watches_alone() -> None:
    counter, other = Counter(), []
    with watching(counter):
        thread = Thread(target=lambda: other.append(watched()))
        thread.start()
        thread.join(30)
        assert watched()
    assert other == [False]


def test_walking_reaches_every_array_of_every_module() -> None:
    """No array hides in a field that `walk` does not know: the fields of all modules hold just what it yields."""
    network = bertcli.variant("mini", heads="mlm,nsp", weights=3).network
    walked = dict(walk(network))
    held = [
        value
        for module in walked.values()
        if isinstance(module, Module)
        for value in vars(module).values()
        if isinstance(value, np.ndarray)
    ]
    listed = [item.array for item in walked.values() if isinstance(item, Parameter)]
    assert sorted(map(id, held)) == sorted(map(id, listed))


def test_modules_are_frozen() -> None:
    layer = bertcli.variant("tiny", weights=0).network.encoder.layers[0]
    assert isinstance(layer, EncoderLayer)
    norm = layer.attention_norm
    with pytest.raises(AttributeError):
        norm.eps = 1.0  # type: ignore[misc]
    with pytest.raises(ValueError, match="read-only"):
        norm.weight[0] = 2
