"""Models from a variant's name or a config.json: without weights they can be counted and traced, but not run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bertcli.bert import Bert
from bertcli.config import TEXTBOOK, BertConfig, parse_heads, variant_config
from bertcli.config_file import read_config
from bertcli.errors import BertcliError
from bertcli.memory import shape_only
from bertcli.model import Model
from bertcli.parts import Array
from bertcli.textbook import Textbook
from bertcli.tree import Request, Source, build
from bertcli.untrusted import shown


def variant(
    name: str = "base",
    *,
    config: str | Path | BertConfig | None = None,
    heads: str | Iterable[str] = "pooler",
    vocab_size: int | None = None,
    num_labels: int | None = None,
    weights: Mapping[str, ArrayLike] | int | None = None,
) -> Model:
    """A model from a variant's name or a config.json; without `weights` it can be counted and traced, but not run.

    config: the path of a config.json, or a BertConfig, instead of a name. heads: any of pooler, mlm, nsp, classifier,
    as a list or as "mlm,nsp"; or "none". vocab_size, num_labels: override the configuration's. weights: a mapping from
    the paths that `bertcli.params` lists to arrays, or a seed for random ones. Errors: BertcliError for an unknown name
    or head, an impossible configuration, and weights of wrong shapes or paths.
    """
    if config is None:
        settings = variant_config(name)
    elif isinstance(config, BertConfig):
        settings, name = config, config.model_type
    else:
        if not Path(config).exists():
            raise BertcliError(f"{config} is missing: give the path of an existing config.json.")
        settings, name = read_config(Path(config)), str(config)
    if vocab_size is not None:
        settings = replace(settings, vocab_size=vocab_size)
    if num_labels is not None:
        settings = replace(settings, num_labels=num_labels, id2label={})
    if isinstance(weights, int | np.integer) and weights < 0:
        raise BertcliError(f"A seed must be a whole number of at least 0, and {weights} is not.")
    chosen = parse_heads(heads if isinstance(heads, str) else tuple(heads))
    made: dict[str, Array] = {}
    source = _weights(weights, made)
    network: Bert | Textbook
    if settings.model_type == TEXTBOOK:
        network = build(_textbook_kind(chosen), settings, source, chosen)
    else:
        network = build(Bert, settings, source, chosen)
    for path in weights if isinstance(weights, Mapping) else ():
        if path not in made:
            raise BertcliError(f"The weights have {shown(path)}, which this model does not have: see bertcli.params.")
    return Model(settings, chosen, network, name, has_weights=weights is not None)


def _textbook_kind(heads: tuple[str, ...]) -> type[Textbook]:
    for head in heads:
        if head not in ("pooler", "mlm"):
            raise BertcliError(f"The textbook model has no {head} head; it has pooler and mlm.")
    return Textbook


def _weights(weights: Mapping[str, ArrayLike] | int | None, made: dict[str, Array]) -> Source:
    """A source of arrays: shapes only (zero strides, no memory), those of a mapping, or random ones.

    `made` collects all of them by path.
    """
    generator = np.random.default_rng(weights) if isinstance(weights, int | np.integer) else None

    def make(request: Request) -> Array:
        if weights is None:
            return shape_only(request.shape)
        if generator is not None:
            return generator.normal(0, 0.02, request.shape).astype(np.float32)
        return _given(weights, request)

    def source(request: Request) -> Array:
        tied = request.tied and not (isinstance(weights, Mapping) and request.path in weights)
        array = made[request.tied] if tied and request.tied else make(request)
        array.flags.writeable = False
        made[request.path] = array
        return array

    return source


def _given(weights: Any, request: Request) -> Array:
    if request.path not in weights:
        raise BertcliError(f"The weights lack '{request.path}' of shape {request.shape}.")
    array = np.array(weights[request.path], dtype=np.float32)
    if array.shape != request.shape:
        raise BertcliError(f"The weight '{request.path}' has shape {array.shape}; it should be {request.shape}.")
    return array
