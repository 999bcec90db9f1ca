"""Load the network of a checkpoint folder, with an account of every tensor in its files (`info`, `params`).

The names of tensors come from each family's table (models/registry.py). network_files.py opens the files, and lora.py
an adapter's; here a parameter finds its tensor.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from bertcli.errors import BertcliError
from bertcli.folder.files import read_object
from bertcli.folder.layout import Layout
from bertcli.folder.modules import PROJECTION, STANFORD
from bertcli.models.config import Config
from bertcli.models.registry import (
    EXCLUSIVE_HEADS,
    Family,
    family,
    heads_in,
    named_heads,
    parse_config,
    parse_heads,
    with_stored_labels,
)
from bertcli.models.tensor_names import TensorSlice
from bertcli.network.heads import Network
from bertcli.network.module import Request, build
from bertcli.tracing.dispatch import Array
from bertcli.weights.network_files import NetworkFiles, open_plain
from bertcli.weights.tensors import StoredTensor

if TYPE_CHECKING:
    from bertcli.weights.lora import Adapter

# Why a tensor of the file is ignored, with the name of another tensor or parameter behind it where it needs one.
UNUSED = "not part of this model"
UNREAD = "for what bertcli does not do"
CONSTANT = "a constant"
AFTER = "for encode and rank"
TIED = "tied to"
COPY = "a second copy of"
DIFFERENT = "its values differ from those of"
CUSTOM_CODE = "it has code of its own (auto_map in config.json), which bertcli does not run, so use another model"
UNFIT = "the weights are not those of this config.json, so take both from one model, or use another"
# The end of a tensor's name -> the end it has in other files. If a file has both, the second is used.
OTHER_NAMES = {
    "LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta",
    "predictions.bias": "predictions.decoder.bias", "lm_head.bias": "lm_head.decoder.bias",
    "embedding.weight": "embeddings",
}  # fmt: skip
# Tensors that some versions of transformers stored, though they follow from config.json.
CONSTANTS = ("embeddings.position_ids", "embeddings.token_type_ids", "rotary_embeddings.inv_freq")

BASE = ("embeddings", "encoder", "pooler")  # parts of a network whose tensors have the family's prefix


class TensorUse(NamedTuple):
    """The use of one tensor of the file."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    use: str  # used, renamed, ignored
    path: str | None  # the parameter's path in the network; all their paths, if the tensor is cut into several
    why: str = ""  # of an ignored one: UNUSED, …
    other: str = ""  # the tensor or the parameter that this is about

    @property
    def note(self) -> str:
        """Why it is ignored, in words; empty for a tensor that is used."""
        return f"{self.why} {self.other}".rstrip()

    @property
    def paths(self) -> list[str]:
        """The paths in `path` as a list."""
        return self.path.split(", ") if self.path else []


@dataclass(frozen=True, eq=False, repr=False)
class Checkpoint:
    """An opened checkpoint: its network, and the use of every tensor in its files."""

    config: Config
    heads: tuple[str, ...]
    network: Network
    tensor_uses: tuple[TensorUse, ...]

    @property
    def notes(self) -> list[str]:
        """A line about unused tensors; empty if there are none."""
        unused = [use.name for use in self.tensor_uses if use.why in (UNUSED, DIFFERENT)]
        if not unused:
            return []
        count = "1 unused tensor" if len(unused) == 1 else f"{len(unused)} unused tensors"
        more = f" and {len(unused) - 3} more" if len(unused) > 3 else ""
        return [f"{count} in the checkpoint: {', '.join(unused[:3])}{more}."]


def open_checkpoint(layout: Layout, heads: str | None = None) -> Checkpoint:
    """Open a folder with config.json and weights; `heads` keeps only these (default: all that are stored).

    Weights stored as float32 are used in place, memory-mapped and read-only; other types are converted to float32.
    A missing tensor is an error.
    """
    folder, settings = layout.network, layout.type_settings
    # A kind may have a type of folder of its own.
    files: NetworkFiles | None = layout.folder_type.open(folder, settings)
    config, model_family, stored, custom_code = open_plain(folder) if files is None else files
    adapter = None
    if layout.folder.adapter is not None:
        from bertcli.weights.lora import open_adapter  # late: few models have one

        adapter = open_adapter(layout.folder.adapter)
        stored = adapter.in_place(stored, model_family, OTHER_NAMES)
        config = replace(config, architectures=adapter.architectures or config.architectures)
    stored_heads = heads_in(stored.keys(), config, model_family)
    if adapter is not None:
        stored_heads = adapter.heads(stored_heads, model_family, named_heads(config, model_family))
    chosen = stored_heads if heads is None else parse_heads(heads, model_family)
    missing = [head for head in chosen if head not in stored_heads]
    if missing:
        raise BertcliError(f"The checkpoint has no {missing[0]} head; it has {', '.join(stored_heads) or 'none'}.")
    config.check_heads(chosen)
    saved = adapter.whole if adapter is not None else {}
    config = with_stored_labels(config, model_family, stored, stored_heads, saved).with_stored(stored)
    advice = CUSTOM_CODE if custom_code else UNFIT
    loader = _Loader(stored, config, model_family, advice, adapter)
    network = build(model_family.network, config, loader, chosen)
    if adapter is not None:
        adapter.check(model_family)
    return Checkpoint(config, chosen, network, loader.account())


def read_config(file: Path) -> Config:
    """Read a config.json without weights.

    A model with custom code is refused: without its weights nobody can tell that it computes what its family does.

    Errors: BertcliError for a file that is unreadable, of an unsupported family, or of a model with custom code.
    """
    data = read_object(file)
    config = parse_config(data, file)
    if data.get("auto_map") and not family(config.model_type).custom_code:
        raise BertcliError(f"{file} is not of a plain {config.title} model: {CUSTOM_CODE}.")
    return config


@dataclass(eq=False, repr=False)
class _Loader:
    """The source of arrays for `build`: finds a parameter's tensor, checks its shape, and records its use."""

    stored: Mapping[str, StoredTensor]
    config: Config
    family: Family
    advice: str  # ends the message if a tensor is missing, or its shape does not fit the configuration
    adapter: "Adapter | None" = None
    taken: dict[str, TensorUse] = field(default_factory=dict)
    arrays: dict[str, Array] = field(default_factory=dict)
    whole: dict[str, Array] = field(default_factory=dict)  # converted tensors that several parameters are slices of

    @cached_property
    def prefix(self) -> str:
        """The prefix of the base model's tensors in this file."""
        return self.family.prefix_in(self.stored)

    def __call__(self, request: Request) -> Array:
        """Return the array of a parameter. `build` (network/module.py) calls this for one after the other."""
        if request.tied and not self._stored_apart(request.path, request.tied):
            array = self._tied(request.tied)
            name = self._tensor_slice(request.path).name
            if name in self.stored:
                self._take(self.stored[name], "ignored", None, TIED, request.tied)
        else:
            array = self._load(request)
        # Kept without the adapter's change: that applies to one of two tied parameters only.
        self.arrays[request.path] = array
        if self.adapter is None:
            return array
        path = self.config.stored_path(request.path)
        return self.adapter.changed(self.family, path, array, self.config.num_attention_heads)

    def _tied(self, path: str) -> Array:
        """Return the array of a parameter that another is tied to; the base's, if an adapter has replaced it."""
        originals = self.adapter.originals if self.adapter is not None else {}
        for name in self._find(self._tensor_slice(path).name):
            if name in originals:
                return originals[name].float32()
        return self.arrays[path]

    def _load(self, request: Request) -> Array:
        """Return a parameter's array from the file; record the use of its tensor and of the tensor's copies."""
        tensor_slice = self._tensor_slice(request.path)
        name, shape = tensor_slice.name, tensor_slice.whole(request.shape)
        names = self._find(name)
        if not names:
            raise self._missing(request, name, shape)
        tensor, *copies = [self.stored[stored] for stored in names]
        if tensor.shape != shape:
            raise BertcliError(
                f"The tensor '{tensor.name}' has shape {tensor.shape}, but config.json requires {shape}: {self.advice}."
            )
        use = "used" if tensor.name.removeprefix(self.prefix) == name else "renamed"
        self._take(tensor, use, self._paths(tensor.name, request.path))
        for copy in copies:
            self._take(copy, "ignored", None, COPY if tensor.equals(copy) else DIFFERENT, tensor.name)
        if tensor_slice.is_whole:
            return tensor.float32()
        # Converted once, since the other slices of the tensor are asked for later.
        if tensor.name not in self.whole:
            self.whole[tensor.name] = tensor.float32()
        return tensor_slice.cut(self.whole[tensor.name], self.config.num_attention_heads)

    def _missing(self, request: Request, name: str, shape: tuple[int, ...]) -> BertcliError:
        """Make the error for a parameter whose tensor is missing."""
        part = request.path.partition(".")[0]
        expected = self.prefix + name if part in BASE else name
        if self.adapter is not None and part in (*EXCLUSIVE_HEADS, "pooler"):
            return BertcliError(
                f"{self.adapter.folder.path} lacks {expected.removesuffix('.weight')}, as its base does: train it "
                "with modules_to_save."
            )
        return BertcliError(f"The checkpoint lacks the tensor '{expected}' of shape {shape}: {self.advice}.")

    def _paths(self, name: str, path: str) -> str:
        """Add a parameter's path to those of the parameters that were cut from the same tensor."""
        return f"{self.taken[name].path}, {path}" if name in self.taken else path

    def _tensor_slice(self, path: str) -> TensorSlice:
        """Choose the tensor, or the slice of one, for the parameter at a path: the first name that the file has."""
        slices = self.family.tensor_slices(self.config.stored_path(path))
        return next((part for part in slices if self._find(part.name)), slices[0])

    def _find(self, name: str) -> list[str]:
        """List the stored tensors with this name, or an older or prefixed one; the first is used."""
        names = [name.removesuffix(end) + other for end, other in OTHER_NAMES.items() if name.endswith(end)]
        names.append(name)
        names += [self.prefix + bare_name for bare_name in names] if self.prefix else []
        return [stored for stored in names if stored in self.stored]

    def _stored_apart(self, path: str, tied: str) -> bool:
        """True if config.json calls two parameters tied but the file holds different values for the second.

        The stored values are then used, as in transformers 5. To tell, both tensors are read up to the first rows that
        differ; copies, which are equal, are read whole.
        """
        names, tied_names = (self._find(self._tensor_slice(parameter).name) for parameter in (path, tied))
        if not names or not tied_names:
            return False
        tensor, tied_tensor = self.stored[names[0]], self.stored[tied_names[0]]
        return tensor.dtype != tied_tensor.dtype or not tensor.equals(tied_tensor)

    def _take(self, tensor: StoredTensor, use: str, path: str | None, why: str = "", other: str = "") -> None:
        """Record the use of a tensor."""
        name, shape, size = tensor.name, tensor.shape, tensor.nbytes
        dtype = tensor.stored_as or tensor.dtype
        self.taken[name] = TensorUse(name, shape, dtype, size, use, path, why, other)

    def account(self) -> tuple[TensorUse, ...]:
        """List the use of every tensor of the file, in file order."""
        for name in self.stored.keys() - self.taken.keys():
            bare_name = name.removeprefix(self.prefix)
            if name == PROJECTION and STANFORD in self.config.architectures:
                why = AFTER
            elif bare_name.endswith(CONSTANTS):
                why = CONSTANT
            elif bare_name.startswith(self.family.ignored_prefixes):
                why = UNREAD
            else:
                why = UNUSED
            self._take(self.stored[name], "ignored", None, why)
        return tuple(self.taken[name] for name in self.stored)
