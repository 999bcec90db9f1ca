"""What a file of `families/` says of its family: configuration, network, names of tensors, heads, known sizes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from bertcli.checkpoint.config import Config
from bertcli.network.module import optional_parts
from bertcli.network.network import Network


class Head:
    """How to tell that a file holds a head: there is a tensor whose name begins with `prefix`.

    Of several heads that are trained one at a time (`classifier.` may be any of three), config.json's architecture,
    which ends in one of `architectures`, says which it is; without it, the first in the family's table.
    """

    def __init__(self, prefix: str, *architectures: str) -> None:
        self.prefix = prefix
        self.architectures = architectures

    def named(self, config: Config) -> bool:
        """Whether config.json names a model with this head."""
        return any(name.endswith(self.architectures) for name in config.architectures)


class Place(NamedTuple):
    """A tensor's name, without prefix, and which of its equal parts, along the first axis, a parameter is."""

    name: str
    number: int = 0
    parts: int = 1


@dataclass(frozen=True)
class Family:
    """A family: one page of the network, one configuration, and one table of names."""

    config: type[Config]
    network: type[Network]
    prefix: str  # of the tensors of the base model; one that is saved alone lacks it
    names: tuple[tuple[str, str], ...]  # pattern of our whole path, the checkpoint's name (`[1/3]`: its second third)
    heads: Mapping[str, Head]
    variants: Mapping[str, Config]
    other_names: Mapping[str, str] = field(default_factory=dict)  # a name -> another; used where both are stored
    buffers: tuple[str, ...] = ()  # constants that some versions stored
    hints: Mapping[str, str] = field(default_factory=dict)  # of a head that is missing, what to do
    stored: bool = True  # whether there are checkpoints of it

    def place_of(self, path: str) -> Place:
        """Where files hold the parameter at a path of the network."""
        for pattern, name in self.names:
            match = re.fullmatch(pattern, path)
            if match:
                name, _, part = match.expand(name).removesuffix("]").partition("[")
                number, parts = map(int, part.split("/")) if part else (0, 1)
                return Place(name, number, parts)
        raise KeyError(path)

    @cached_property
    def head_names(self) -> tuple[str, ...]:
        """The heads that models of this family may have."""
        return optional_parts(self.network)
