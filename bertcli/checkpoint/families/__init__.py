"""The families that run, a file each; which of them a config.json is about, and a variant is of.

A family's file, and the page of its network, are imported when they are first needed: no command needs all of them.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

from bertcli.checkpoint.config import Config, texts
from bertcli.checkpoint.untrusted import read_object
from bertcli.errors import BertcliError, shown
from bertcli.lazy import cached_property
from bertcli.network.module import optional_parts
from bertcli.network.network import Network

# model_type in config.json -> the file here that describes it, and how the names of its classes begin
FILES = {
    "bert": ("bert", "Bert"),
    "roberta": ("roberta", "Roberta"),
    "xlm-roberta": ("roberta", "XLMRoberta"),
    "camembert": ("roberta", "Camembert"),
    "distilbert": ("distilbert", "DistilBert"),
    "mpnet": ("mpnet", "MPNet"),
    "electra": ("electra", "Electra"),
    "modernbert": ("modernbert", "ModernBert"),
    "deberta-v2": ("deberta", "DebertaV2"),
    "albert": ("albert", "Albert"),
    "model2vec": ("static", "StaticModel"),
}
TEXTBOOK = "textbook"
RUNS = (
    "BERT, RoBERTa, XLM-RoBERTa, CamemBERT, DistilBERT, MPNet, ELECTRA, ModernBERT, DeBERTa-v2 and v3, ALBERT and "
    "static embeddings"
)


class Place(NamedTuple):
    """A tensor's name, without prefix, and which of its equal parts, along the first axis, a parameter is."""

    name: str
    number: int = 0
    parts: int = 1


@dataclass(frozen=True)
class Family:
    """A family: one page of the network, one configuration, and one table of names (none: it is in no files)."""

    config: type[Config]
    network: type[Network]
    prefix: str  # of the tensors of the base model; one that is saved alone lacks it
    names: tuple[tuple[str, str], ...]  # pattern of our whole path, the checkpoint's name (`[1/3]`: its second third)
    variants: Mapping[str, Config]
    hints: Mapping[str, str] = field(default_factory=dict)  # of a head that is missing, what to do

    def place_of(self, path: str) -> Place:
        """Where files hold the parameter at a path of the network."""
        for pattern, name in self.names:
            match = re.fullmatch(pattern, path)
            if match:
                name, _, part = match.expand(name).removesuffix("]").partition("[")
                return Place(name, *map(int, part.split("/"))) if part else Place(name)
        raise KeyError(path)

    def begins(self, head: str) -> str | None:
        """How names in files begin for a head's own first layer; None for a head that is in no files."""
        for layer in ("transform", "dense", "output"):
            with suppress(KeyError):
                return self.place_of(f"{head}.{layer}.weight").name.removesuffix("weight")
        return self.place_of(f"{head}.bias").name if self.names else None

    @cached_property
    def head_names(self) -> tuple[str, ...]:
        """The heads that models of this family may have."""
        return optional_parts(self.network)


def family(model_type: str) -> Family:
    """The family of a model_type that is known."""
    name = TEXTBOOK if model_type == TEXTBOOK else FILES[model_type][0]
    found: Family = import_module(f"{__name__}.{name}").FAMILY
    return found


def read_config(file: Path) -> Config:
    """The configuration in a config.json; BertcliError for a file that is unreadable or of no family that runs."""
    data = read_object(file)
    try:
        return parse_config(data)
    except BertcliError as error:
        raise BertcliError(f"{file}: {error}") from None


def parse_config(data: Mapping[str, Any]) -> Config:
    """The configuration from config.json's own keys; an older file may lack most of them."""
    model_type = _model_type(data)
    return family(model_type).config.parse({**data, "model_type": model_type})


def _model_type(data: Mapping[str, Any]) -> str:
    """What config.json calls its model, or what the name of its class says; BertcliError for what does not run."""
    known, names = data.get("model_type"), texts(data, "architectures")
    if known is None:
        starts = [start for _, start in FILES.values() if any(name.startswith(start) for name in names)]
        known = next((one for one in FILES if FILES[one][1] == max(starts, key=len, default="Bert")), None)
        known = names[0] if names and not starts else known
    if known != TEXTBOOK and (not isinstance(known, str) or known not in FILES):
        raise BertcliError(f"This is a model of type {shown(known)}, which bertcli does not run; it runs {RUNS}.")
    return known


def variants() -> dict[str, Config]:
    """Every named variant with its configuration."""
    files = dict.fromkeys(file for file, _ in FILES.values())
    found = [import_module(f"{__name__}.{file}").FAMILY.variants for file in [*files, TEXTBOOK]]
    return {name: config for some in found for name, config in some.items()}


def variant_config(name: str) -> Config:
    """The configuration of a variant by its name."""
    from_bert = family("bert").variants.get(name)  # most often asked for, and needs no other family's page
    if from_bert is not None:
        return from_bert
    found = variants()
    if name not in found:
        raise BertcliError(f"There is no variant '{name}'; choose from {', '.join(found)}.")
    return found[name]


def parse_heads(heads: str | tuple[str, ...] | list[str], of: Family) -> tuple[str, ...]:
    """Heads from a list or from "mlm,nsp" or "none", in the family's order, with the pooler where they read it."""
    names = [name.strip() for name in heads.split(",")] if isinstance(heads, str) else list(heads)
    if names == ["none"]:
        return ()
    for name in names:
        if not of.head_names:
            raise BertcliError(f"There is no head '{name}': {of.config.title} has none, so leave out the heads.")
        if name not in of.head_names:
            raise BertcliError(
                f"There is no head '{name}'; choose from {', '.join(of.head_names)} (the heads of {of.config.title}), "
                "or none."
            )
    wanted = set(names) | ({"pooler"} if of.network.pooled & set(names) else set())
    return tuple(name for name in of.head_names if name in wanted)
