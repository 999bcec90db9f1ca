"""A checkpoint folder -> the module tree, and an account of every tensor in it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bertcli.bert import Bert
from bertcli.config import HEADS, TEXTBOOK, BertConfig, parse_heads
from bertcli.config_file import read_config
from bertcli.errors import BertcliError
from bertcli.memory import shape_only
from bertcli.names import (
    BUFFERS,
    HEAD_PREFIXES,
    OLD_NORM_NAMES,
    OTHER_CLASSIFIERS,
    OTHER_NAMES,
    PREFIX,
    READ_THE_POOLER,
    WITH_POOLER,
    hugging_face_name,
)
from bertcli.parts import Array
from bertcli.tensors import StoredTensor, open_tensors
from bertcli.tree import Request, build

UNUSED = "not part of this model"
COPY = "a second copy of"
DIFFERENT = "its values differ from those of"


class TensorUse(NamedTuple):
    """What the loader does with one tensor of the file, or would have done with a missing one."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int
    use: str  # used, renamed, ignored, missing
    path: str | None  # in our tree
    note: str = ""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A checkpoint, opened: its tree, and an account of every tensor in its files."""

    config: BertConfig
    heads: tuple[str, ...]
    network: Bert
    uses: tuple[TensorUse, ...]

    @property
    def notes(self) -> list[str]:
        """One line about unused tensors in the file, if there are any."""
        unused = [use.name for use in self.uses if use.note.startswith((UNUSED, DIFFERENT))]
        if not unused:
            return []
        shown = ", ".join(unused[:3]) + (f" and {len(unused) - 3} more" if len(unused) > 3 else "")
        return [f"{len(unused)} unused tensor{'s' * (len(unused) > 1)} in the checkpoint: {shown}."]


def open_checkpoint(folder: Path, heads: str | None = None, *, partial: bool = False) -> Checkpoint:
    """Open a folder with config.json and safetensors; `heads` keeps only these (default: all it has).

    Weights stored as float32 are used in place, memory-mapped and read-only; other types are converted to float32.
    A missing tensor is an error; with `partial` it is only listed as missing, and the network cannot be run.
    """
    if not os.path.lexists(folder / "config.json"):
        raise BertcliError(f"{folder} has no config.json: give the folder of a model, or fetch this one again.")
    config = read_config(folder / "config.json")
    if config.model_type == TEXTBOOK:
        raise BertcliError(f"{folder} holds a textbook model; only BERT checkpoints can be opened.")
    stored = open_tensors(folder)
    loader = _Loader(stored, config, partial)
    there = _heads_in(stored, config)
    wanted = there if heads is None else parse_heads(heads)
    missing = [head for head in wanted if head not in there]
    if missing:
        raise BertcliError(f"The checkpoint has no {missing[0]} head; it has {', '.join(there) or 'none'}.")
    config = _with_stored_labels(config, stored, there)
    network = build(Bert, config, loader, wanted)
    return Checkpoint(config, wanted, network, loader.account())


class _Loader:
    """The source of arrays for `build`: finds the tensor for a path, checks its shape, and records what it did."""

    def __init__(self, stored: Mapping[str, StoredTensor], config: BertConfig, partial: bool) -> None:
        self.stored = stored
        self.config = config
        self.partial = partial
        self.prefix = PREFIX if any(name.startswith(PREFIX + "embeddings.") for name in stored) else ""
        self.taken: dict[str, TensorUse] = {}
        self.arrays: dict[str, Array] = {}

    def __call__(self, request: Request) -> Array:
        if request.tied and self.config.tie_word_embeddings and not self._stored_apart(request.path, request.tied):
            array = self.arrays[request.tied]
            self._note_tied(request)
        else:
            array = self._load(request)
        self.arrays[request.path] = array
        return array

    def _load(self, request: Request) -> Array:
        name = hugging_face_name(request.path)
        found = self._find(name)
        if not found and not self.partial:
            raise BertcliError(
                f"The checkpoint lacks the tensor '{self._expected(name)}' of shape {request.shape}: fetch it again."
            )
        if not found:
            self.taken[name] = TensorUse(self._expected(name), request.shape, "", 0, "missing", request.path)
            return shape_only(request.shape)
        tensor = self.stored[found[0]]
        if tensor.shape != request.shape:
            raise BertcliError(
                f"The tensor '{found[0]}' has shape {tensor.shape}, but config.json requires {request.shape}: "
                "fetch both again."
            )
        use = "used" if found[0].removeprefix(PREFIX) == name else "renamed"
        self._take(tensor, use, request.path)
        for again in found[1:]:
            alike = np.array_equal(tensor.float32(), self.stored[again].float32())
            self._take(self.stored[again], "ignored", None, f"{COPY if alike else DIFFERENT} {found[0]}")
        return tensor.float32()

    def _find(self, name: str) -> list[str]:
        """The stored tensors known by this name, starting with the one to use."""
        candidates = [OTHER_NAMES[name]] if name in OTHER_NAMES else []
        candidates += [name, *(name.replace(new, old) for new, old in OLD_NORM_NAMES.items() if new in name)]
        candidates += [self.prefix + one for one in candidates] if self.prefix else []
        return [one for one in candidates if one in self.stored]

    def _stored_apart(self, path: str, tied: str) -> bool:
        """True if config.json calls two parameters tied but the file holds different values for the second.

        The stored values are then used, as in transformers 5. Identical copies are read whole, others hardly beyond the
        first rows.
        """
        found, others = self._find(hugging_face_name(path)), self._find(hugging_face_name(tied))
        if not found or not others:
            return False
        one, other = self.stored[found[0]], self.stored[others[0]]
        if (one.shape, one.dtype) != (other.shape, other.dtype):
            return True
        rows = range(0, one.shape[0], 1024)
        return not all(np.array_equal(one.array[i : i + 1024], other.array[i : i + 1024]) for i in rows)

    def _expected(self, name: str) -> str:
        return name if name.startswith(("cls.", "classifier.")) else self.prefix + name

    def _note_tied(self, request: Request) -> None:
        name = hugging_face_name(request.path)
        if name in self.stored:
            self._take(self.stored[name], "ignored", None, f"tied to {request.tied}")

    def _take(self, tensor: StoredTensor, use: str, path: str | None, note: str = "") -> None:
        self.taken[tensor.name] = TensorUse(tensor.name, tensor.shape, tensor.dtype, tensor.nbytes, use, path, note)

    def account(self) -> tuple[TensorUse, ...]:
        """Every tensor of the file, in file order, with its use; then the missing ones."""
        for name in self.stored.keys() - self.taken.keys():
            note = "a constant" if _bare(name) in BUFFERS else UNUSED
            self._take(self.stored[name], "ignored", None, note)
        missing = [name for name in self.taken if name not in self.stored]
        return tuple(self.taken[name] for name in [*self.stored, *missing])


def _bare(name: str) -> str:
    return name.removeprefix(PREFIX)


def _heads_in(stored: Mapping[str, StoredTensor], config: BertConfig) -> tuple[str, ...]:
    """The heads a file holds. A head that is only partly stored counts; its missing tensor is an error later."""
    names = [_bare(name) for name in stored]
    found = {head for head, prefix in HEAD_PREFIXES.items() if any(name.startswith(prefix) for name in names)}
    if any(architecture in OTHER_CLASSIFIERS for architecture in config.architectures):
        found.discard("classifier")
    if "pooler" not in found and found & READ_THE_POOLER:
        if any(architecture in WITH_POOLER for architecture in config.architectures):
            found.add("pooler")
        else:
            found -= READ_THE_POOLER
    return tuple(head for head in HEADS if head in found)


def _with_stored_labels(config: BertConfig, stored: Mapping[str, StoredTensor], heads: tuple[str, ...]) -> BertConfig:
    """The config with as many labels as the classifier has rows, if config.json neither names nor counts them."""
    weight = stored.get("classifier.weight")
    if "classifier" not in heads or weight is None or not weight.shape:
        return config
    if config.id2label or config.num_labels != BertConfig.num_labels:
        return config
    return replace(config, num_labels=weight.shape[0])
