"""PartWatcher: read or overwrite the states, attention and feed-forward outputs of a pass while it runs.

heads.py (ablation, weights) and patch.py (activation patching) stand on it. It sees parts of layers; the trace, which
sees every op, is in analysis/trace.
"""

import re
from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from bertcli.errors import BertcliError
from bertcli.network.module import walk
from bertcli.tracing.dispatch import Array, Module, Op

LAYERS, ATTENTION, FEED_FORWARD, HEADS = PATCHED_PLACES = ("layers", "attention", "feed-forward", "heads")
WEIGHTS = "weights"
OF_OPS = {"attend": HEADS, "softmax": WEIGHTS}
# The path of an encoder layer, or of its part; experts and plain layers stand where others have a gated one.
LAYER_PATH = re.compile(r"(?:.*\.)?layers\.\d+(?:\.(attention|feed_forward|plain|experts))?")
NAMES = {None: LAYERS, "attention": ATTENTION}


# Of an array of a whole pass that is kept: 1 GB of float32.
MOST_NUMBERS = 1 << 28


def check_size(shape: Sequence[int], what: str) -> None:
    """Refuse an array of too many numbers; `what` they are, and how there are fewer. Errors: BertcliError."""
    count = prod(shape)
    if count > MOST_NUMBERS:
        raise BertcliError(f"There are {count:,} {what}; at most {MOST_NUMBERS:,} are kept in an array.")


class PartWatcher:
    """Call `see(name, layer, array)` for every part of a pass; the pass goes on with what `see` writes into the array.

        name                         array                          layer
        layers                       [token, hidden]                0 the embeddings' output, N layer N's
        attention, feed-forward      [token, hidden]                from 0
        heads                        [batch, head, token, size]     from 0
        weights                      [batch, head, query, key]      from 0

    Layers are counted as they run, so one module that runs as several layers (ALBERT) is several layers here.

    state [token, hidden]: the pass begins with it at layer `first`, and earlier layers are skipped. whole: the last
    layer computes every token, not only those that a prediction head reads.
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
        self._see = see
        self._first = first
        self._state = state
        self._whole = whole
        # The id of a module -> what its result is called.
        self._names: dict[int, str] = {}
        for path, item in walk(network):
            match = LAYER_PATH.fullmatch(path)
            if match:
                self._names[id(item)] = NAMES.get(match[1], FEED_FORWARD)
        # Layers that have begun.
        self._begun = 0
        # The layer that is running; None outside of layers.
        self._layer: int | None = None

    def op(self, op: Op[Any], arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array:
        result: Array = op.compute(*arguments, **keywords)
        # A router of experts has a softmax, too; its result has two axes.
        if self._layer is not None and op.name in OF_OPS and result.ndim == 4:
            self._see(OF_OPS[op.name], self._layer, result)
        return result

    def module(self, module: Module, arguments: tuple[Any, ...], keywords: dict[str, Any]) -> Array:
        name = self._names.get(id(module))
        if module is self._encoder:
            x, batch, *rows = arguments
            x = x if self._state is None else self._state
            self._see(LAYERS, self._first, x)
            if not self._whole:
                return module.forward(x, batch, *rows)
            hidden = module.forward(x, batch)
            return hidden if not rows or rows[0] is None else hidden[rows[0]]
        if name == LAYERS and self._layer is None:
            return self._run_layer(module, arguments, keywords)
        result = module.forward(*arguments, **keywords)
        if name is not None and self._layer is not None:
            self._see(name, self._layer, result)
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
