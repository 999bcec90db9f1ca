"""Build a network without a checkpoint: from a published size or a config.json, with given, random or no weights."""

from collections.abc import Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bertcli.errors import PATH, BertcliError, check_count, check_type, quoted
from bertcli.models.config import Config, renamed
from bertcli.models.registry import family, named_heads, parse_heads, variant_config
from bertcli.network.heads import Network
from bertcli.network.module import Request, build, parameters
from bertcli.platforms import physical_memory
from bertcli.tracing.dispatch import Array, shape_only


def build_variant(
    name: str,
    config: str | Path | Config | None,
    heads: str | Iterable[str] | None,
    vocab_size: int | None,
    num_labels: int | None,
    sizes: Mapping[str, int] | None,
    weights: Mapping[str, ArrayLike] | int | None,
) -> tuple[Config, tuple[str, ...], Network, str]:
    """Build the configuration, heads, network and name for `LoadedModel.variant`; its docstring has the arguments."""
    check_type("name", name, str)
    check_type("heads", heads, Iterable)
    check_type("sizes", sizes, Mapping)
    if config is None:
        settings = variant_config(name)
    elif isinstance(config, Config):
        settings, name = config, config.model_type
    else:
        check_type("config", config, PATH)
        file = Path(config) / "config.json" if Path(config).is_dir() else Path(config)
        if not file.exists():
            raise BertcliError(f"{file} is missing: give the path of an existing config.json.")
        from bertcli.weights.loading import read_config

        settings, name = read_config(file), str(config)
    changed: dict[str, Any] = renamed(sizes or {}, settings.names)
    size_names = [item.name for item in fields(settings) if isinstance(getattr(settings, item.name), int)]
    for key in changed:
        if key not in size_names:
            keys = ", ".join(map(settings.key, size_names))
            raise BertcliError(
                f"{quoted(settings.key(key))} is no size of a {settings.model_type} model: choose from {keys}."
            )
    if vocab_size is not None:
        changed["vocab_size"] = vocab_size
    if num_labels is not None:
        changed |= {"num_labels": num_labels, "id2label": {}}
    settings = replace(settings, **changed)
    source = MadeWeights(weights)
    member = family(settings.model_type)
    if heads is None:
        has_pooler = member.base_pooler and "pooler" in member.head_names
        heads = named_heads(settings, member) or (["pooler"] if has_pooler else [])
    chosen = parse_heads(heads if isinstance(heads, str) else tuple(heads), member)
    settings.check_heads(chosen)
    if isinstance(weights, int):
        _check_memory(build(member.network, settings, MadeWeights(None), chosen), name)
    network = build(member.network, settings, source, chosen)
    source.check_used()
    return settings, chosen, network, name


def _check_memory(network: Network, name: str) -> None:
    """Raise BertcliError, before any weight is drawn, if they take more memory than this machine has."""
    size = 4 * sum({id(parameter.array): parameter.array.size for parameter in parameters(network)}.values())
    memory = physical_memory()
    if memory is not None and size > memory:
        raise BertcliError(
            f"The weights of {name} take {size:,} bytes, but this machine has {memory:,}: leave out the seed (--seed)."
        )


class MadeWeights:
    """The source of arrays for `build`.

    weights: None gives arrays of shapes that take no memory, a seed random numbers, a mapping its arrays by path. A
    tied array that the mapping does not have is the array that it is tied to.
    """

    def __init__(self, weights: Mapping[str, ArrayLike] | int | None) -> None:
        if not isinstance(weights, Mapping):
            check_count("The seed (weights)", weights, least=0)
        self.weights = weights
        self.made: dict[str, Array] = {}
        self._random = np.random.default_rng(weights) if isinstance(weights, int | np.integer) else None

    def __call__(self, request: Request) -> Array:
        has_own = isinstance(self.weights, Mapping) and request.path in self.weights
        array = self.made[request.tied] if request.tied and not has_own else self._make(request)
        array.flags.writeable = False
        self.made[request.path] = array
        return array

    def check_used(self) -> None:
        """Raise BertcliError for a path in the mapping that the network does not have."""
        for path in self.weights if isinstance(self.weights, Mapping) else ():
            if path not in self.made:
                raise BertcliError(
                    f"The weights have {quoted(path)}, which this model does not have: see bertcli.params."
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
