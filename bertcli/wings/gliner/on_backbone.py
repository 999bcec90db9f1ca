"""A model on a backbone: a family of bertcli/models/ with heads of this wing, and how its files are opened.

A kind declares its heads as a `Network` and their sizes as an `OnBackbone`; here both are joined with those of the
family that is the backbone, when such a model is opened.
"""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from bertcli.errors import BertcliError
from bertcli.folder.files import Folder
from bertcli.models.config import Config
from bertcli.models.registry import Family, family, parse_config
from bertcli.network.heads import Network
from bertcli.network.module import fixed, optional_parts
from bertcli.tracing.dispatch import Array, Integers
from bertcli.weights.network_files import NetworkFiles
from bertcli.weights.tensors import open_tensors


class OnBackbone(Config):
    """The configuration of a backbone, and beside it `own`, the settings of the model on it."""

    own: Any = None

    @cached_property
    def sizes(self) -> dict[str, int]:
        """The backbone's, and those of axes that the heads alone have."""
        sizes = super().sizes
        return sizes | self.sizes_of_heads(sizes)

    def sizes_of_heads(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The sizes of axes that the heads alone have."""
        return {}


class HeadsOnBackbone(Network, abstract=True):
    """Heads that read rows of the hidden states: of words and labels, which a pass may not know.

    own_heads: their names.
    """

    own_heads: ClassVar[frozenset[str]]

    def input_rows(self, head: str, batch: Any) -> Integers | None:
        return None if head in self.own_heads else super().input_rows(head, batch)

    def predict(self, head: str, hidden: Array, batch: Any) -> Array:
        """A head's logits; of one of `own_heads` those of a pass whose words are not known: see `rows_of_pass`."""
        if head not in self.own_heads:
            return super().predict(head, hidden, batch)
        of_head: Any = getattr(self, head)
        logits: Array = of_head(hidden, self.rows_of_pass(head, batch))
        return logits

    def rows_of_pass(self, head: str, batch: Any) -> Any:
        """The rows that a head reads of a pass whose words are not known, such as a trace."""
        raise NotImplementedError


def with_heads(
    member: Family, heads: type[HeadsOnBackbone], config: type[OnBackbone], prefix: str, names: str
) -> Family:
    """A family's models with these heads in place of its own, but for the pooler.

    prefix: of the backbone's tensors. names: the table of the heads' tensors.
    """
    own = [head for head in optional_parts(member.network) if head != "pooler"]
    without = {"__annotations__": dict.fromkeys(own, Any), **{head: fixed(None) for head in own}}
    return replace(
        member,
        network=type(heads.__name__, (heads, member.network), without),
        # The family first: its own keys and defaults are those of its files.
        config=type(config.__name__, (member.config, config), {}),
        prefixes=(prefix,),
        names=(names, *member.names),
        variants={},
    )


def open_on_backbone(
    folder: Folder,
    data: Mapping[str, Any],
    file: Path,
    family_of: Callable[[Family], Family],
    spans: str,
    settings: Any,
) -> NetworkFiles:
    """Make the configuration of a model that stands on a backbone, and open its tensors.

    data        the backbone's config.json, which `file` has
    family_of   makes the family with the model's heads
    spans       how the names of the tensors that score spans begin
    settings    those of the model itself

    The vocabulary is as large as the stored embeddings: the library adds tokens to its backbone's. Errors: BertcliError
    for a setting that is not supported, for a backbone of no family that bertcli has, and for damaged weights.
    """
    stored = open_tensors(folder)
    if not any(name.startswith(spans) for name in stored):
        raise BertcliError(f"{folder.path} has no tensors of spans ({spans}*): use another model.")
    try:
        backbone = parse_config({"vocab_size": 1, **data})
        member = family_of(family(backbone.model_type))
        (prefix,) = member.prefixes
        tables = [prefix + tensor_slice.name for tensor_slice in member.tensor_slices("embeddings.token")]
        embeddings = next((stored[name] for name in tables if name in stored), None)
        if embeddings is not None and embeddings.shape:
            backbone = replace(backbone, vocab_size=max(1, embeddings.shape[0]))
        values: dict[str, Any] = {item.name: getattr(backbone, item.name) for item in fields(backbone)}
        config = member.config(**values | {"own": settings})
    except BertcliError as error:
        raise BertcliError(f"{file}: {error}") from None
    return NetworkFiles(config, member, stored)
