"""Watchers at the seam that know in which encoder layer a pass is: what heads, and interventions, are built on.

A layer is a module whose path in the tree ends in `layers.N`; layers are counted as they run, so one module that runs
as several layers is several layers here.
"""

from __future__ import annotations

import re
from typing import Any

from bertcli.engine.array import Array, Integers
from bertcli.network.module import Module, Op, walk

LAYER = re.compile(r"(?:.*\.)?layers\.\d+")


class LayerWatcher:
    """Lets a pass through as it is; `layer` is the encoder layer it is in, None outside."""

    def __init__(self, network: Module) -> None:
        self._layers = {id(item) for path, item in walk(network) if LAYER.fullmatch(path)}
        self._begun = 0
        self.layer: int | None = None

    def op(self, op: Op[Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array:
        result: Array = op.compute(*arguments, **keywords)
        return result

    def module(self, module: Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array:
        if id(module) not in self._layers or self.layer is not None:
            return module.forward(*arguments, **keywords)
        self.layer = self._begun
        self._begun += 1
        try:
            return self.run_layer(module, arguments, keywords)
        finally:
            self.layer = None

    def run_layer(self, module: Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array:
        """Run the layer that the pass has come to, or put something in its place."""
        return module.forward(*arguments, **keywords)


class Silenced(LayerWatcher):
    """Takes up a pass at `layer` from its input there, and sets the output of one head to zero in each sentence.

    `state` [token, hidden] is what goes into that layer, and `heads` has a head for each sentence: copies of one text,
    each without another head, are one batch. Sentences must have equal lengths.
    """

    def __init__(self, network: Module, layer: int, state: Array, heads: Integers) -> None:
        super().__init__(network)
        self._at, self._state, self._heads = layer, state, heads

    def run_layer(self, module: Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array:
        assert self.layer is not None
        if self.layer < self._at:
            return self._state
        return super().run_layer(module, arguments, keywords)

    def op(self, op: Op[Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array:
        result = super().op(op, arguments, keywords)
        if op.name == "mix" and self.layer == self._at:
            result[range(len(self._heads)), self._heads] = 0  # [batch, head, token, size]
        return result
