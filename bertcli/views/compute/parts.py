"""The parts of a pass, to be looked at or written over while it runs."""

import re
from collections.abc import Callable
from typing import Any

from bertcli.network.module import walk
from bertcli.tracing.dispatch import Array, Module, Op

LAYERS, ATTENTION, FEED_FORWARD, HEADS = KINDS = ("layers", "attention", "feed-forward", "heads")
WEIGHTS = "weights"
OF_OPS = {"attend": HEADS, "softmax": WEIGHTS}
# The path of an encoder layer, or of its part; experts and plain layers stand where others have a gated one.
LAYER = re.compile(r"(?:.*\.)?layers\.\d+(?:\.(attention|feed_forward|plain|experts))?")
NAMES = {None: LAYERS, "attention": ATTENTION}


class PartWatcher:
    """Shows `see` every part of a pass with its kind and layer; what it writes into the array, the pass goes on with.

    Of "layers" 0 is the embeddings' output, as in `encode --layer`, and an array is [token, hidden], as of "attention"
    and "feed-forward"; of "heads" it is [batch, head, token, size], of "weights" [batch, head, query, key]. Layers are
    counted as they run, so one module that runs as several layers is several layers here.

    With a `state` [token, hidden], the pass begins with it at layer `first`. whole: every token is computed in the last
    layer, too.
    """

    def __init__(
        self,
        network: Module,
        see: Callable[[str, int, Array], None],
        first: int = 0,
        state: Array | None = None,
        *,
        whole: bool = False,
    ) -> None:
        self._encoder: Module = network.encoder  # type: ignore[attr-defined]
        self._see, self._first, self._state, self._whole = see, first, state, whole
        found = ((LAYER.fullmatch(path), item) for path, item in walk(network))
        self._parts = {id(item): NAMES.get(match[1], FEED_FORWARD) for match, item in found if match}
        self._begun = 0
        self._layer: int | None = None  # that the pass is in

    def op(self, op: Op[Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array:
        result: Array = op.compute(*arguments, **keywords)
        if self._layer is not None and op.name in OF_OPS and result.ndim == 4:  # not a router's shares
            self._see(OF_OPS[op.name], self._layer, result)
        return result

    def module(self, module: Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array:
        part = self._parts.get(id(module))
        if module is self._encoder:
            x, batch, *rows = arguments
            x = x if self._state is None else self._state
            self._see(LAYERS, self._first, x)
            if not self._whole:
                return module.forward(x, batch, *rows)
            hidden = module.forward(x, batch)
            return hidden if not rows or rows[0] is None else hidden[rows[0]]
        if part == LAYERS and self._layer is None:
            return self._run_layer(module, arguments, keywords)
        result = module.forward(*arguments, **keywords)
        if part is not None and self._layer is not None:
            self._see(part, self._layer, result)
        return result

    def _run_layer(self, layer: Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array:
        self._layer, self._begun = self._begun, self._begun + 1
        try:
            result: Array = arguments[0]
            if self._layer >= self._first:
                result = layer.forward(*arguments, **keywords)
                self._see(LAYERS, self._layer + 1, result)
            return result
        finally:
            self._layer = None
