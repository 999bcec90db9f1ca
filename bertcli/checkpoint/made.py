"""Weights that no checkpoint has: shapes alone, random numbers, or arrays from a program."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from bertcli.engine.seam import Array, shape_only
from bertcli.errors import BertcliError, check_count, shown
from bertcli.network.module import Request


class MadeWeights:
    """The source of arrays for `build`: without `weights` shapes that need no memory, with a seed random numbers.

    Else those of a mapping from path to array; a tied one that is not given is the one that it is tied to.
    """

    def __init__(self, weights: Mapping[str, ArrayLike] | int | None) -> None:
        if not isinstance(weights, Mapping):
            check_count("The seed (weights)", weights, least=0)
        self.weights = weights
        self.made: dict[str, Array] = {}
        self._random = np.random.default_rng(weights) if isinstance(weights, int | np.integer) else None

    def __call__(self, request: Request) -> Array:
        given = isinstance(self.weights, Mapping) and request.path in self.weights
        array = self.made[request.tied] if request.tied and not given else self._make(request)
        array.flags.writeable = False
        self.made[request.path] = array
        return array

    def check_used(self) -> None:
        """Raise BertcliError for a path in the mapping that the network has not asked for."""
        for path in self.weights if isinstance(self.weights, Mapping) else ():
            if path not in self.made:
                raise BertcliError(
                    f"The weights have {shown(path)}, which this model does not have: see bertcli.params."
                )

    def _make(self, request: Request) -> Array:
        if self._random is not None:
            return self._random.normal(0, 0.02, request.shape).astype(np.float32)
        if not isinstance(self.weights, Mapping):
            return shape_only(request.shape)
        if request.path not in self.weights:
            raise BertcliError(f"The weights lack '{request.path}' of shape {request.shape}.")
        array = np.array(self.weights[request.path], dtype=np.float32)
        if array.shape != request.shape:
            raise BertcliError(f"The weight '{request.path}' has shape {array.shape}; it should be {request.shape}.")
        return array
