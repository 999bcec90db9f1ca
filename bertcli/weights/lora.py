"""LoRA adapters of peft: replace W by W + s · B A, and some tensors by the adapter's.

    s = lora_alpha / r, or lora_alpha / sqrt(r) with use_rslora;   A [r, in], B [out, r];   embeddings: (B A)ᵀ;
    convolutions: A [r, in, width], B [out, r, 1]

Tensors are named after transformers' modules, which the families' tables translate. A setting that changes numbers is
applied or refused by name. Source: Hu et al. 2021, "LoRA"; the files' meaning: peft 0.21. folder/adapter.py reads the
settings.
"""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bertcli.errors import BertcliError, quoted
from bertcli.folder.adapter import AdapterSettings, read_adapter
from bertcli.folder.files import ADAPTER_FILES, Folder, JsonSettings
from bertcli.models.registry import Family
from bertcli.tracing.dispatch import Array
from bertcli.weights.tensors import COMPILED, StoredTensor, open_file, unwrapped

PREFIX = "base_model.model."
FACTORS = re.compile(r"(.+)\.(lora_A|lora_B)\.weight|(.+)\.(lora_embedding_A|lora_embedding_B)")


class Factors(NamedTuple):
    """The change of a weight: A and B, the scale s, and whether the product is transposed (embeddings)."""

    a: Array
    b: Array
    scale: float
    transposed: bool

    def product(self) -> Array:
        """Compute s · B A: [out, in], [vocabulary, features] for embeddings, [out, in, width] for a convolution."""
        rank, *inner = self.a.shape
        whole = (self.b.reshape(-1, rank) @ self.a.reshape(rank, -1)) * np.float32(self.scale)
        whole = whole.reshape(-1, *inner)
        return np.ascontiguousarray(whole.T) if self.transposed else whole


@dataclass(frozen=True, eq=False, repr=False)
class Adapter:
    """An adapter's tensors by the names of transformers' modules.

    architectures   the class of its model, if the settings name it
    saved           modules_to_save: copies that peft uses in place of the base's modules. Whatever is tied to the
                    original, such as a decoder to the embeddings, keeps the original
    used            names of the weights that were changed so far, for `check`
    """

    folder: Folder
    factors: Mapping[str, Factors]  # by the name of the weight
    whole: Mapping[str, StoredTensor]
    architectures: tuple[str, ...] = ()
    saved: tuple[str, ...] = ()
    used: set[str] = field(default_factory=set)
    originals: dict[str, StoredTensor] = field(default_factory=dict)  # the base's tensors that copies have replaced

    def in_place(
        self, stored: Mapping[str, StoredTensor], family: Family, other_names: Mapping[str, str]
    ) -> dict[str, StoredTensor]:
        """Replace tensors of the base by those that the adapter has whole.

        Either file may call a tensor by an older name, and put the family's prefix before it.
        """
        result, prefix = dict(stored), family.prefix_in(stored)
        for name, tensor in self.whole.items():
            bare = family.bare_name(name)
            older = [bare.removesuffix(end) + other for end, other in other_names.items() if bare.endswith(end)]
            names = [start + ending for ending in (bare, *older) for start in ("", prefix)]
            replaced = next((key for key in names if key in result), None)
            is_copy = any(f".{module}." in f".{name}" for module in self.saved)
            if is_copy and bare in family.without_copies:
                continue
            if is_copy and replaced is not None:
                self.originals[replaced] = result[replaced]
            for key in names:
                result.pop(key, None)
            # Under the base's name, since what else is read goes by its names.
            new_name = replaced or name
            result[new_name] = tensor._replace(name=new_name)
        return result

    def heads(self, heads: tuple[str, ...], family: Family, named: tuple[str, ...]) -> tuple[str, ...]:
        """Keep the heads of the adapter's class: the base's other heads were not trained with it.

        An adapter has a head if it has the head's last layer; where its first layer is missing, loading says so.
        """
        if not self.architectures:
            return heads
        adapted = {family.bare_name(name) for name in self.whole}
        begun = {
            head
            for head in named
            if adapted & {tensor_slice.name for tensor_slice in family.tensor_slices(f"{head}.output.weight")}
        }
        if begun & family.network.pooled:
            begun.add("pooler")
        return tuple(
            head for head in family.head_names if head in begun or (head in heads and head in (*named, "pooler"))
        )

    def changed(self, family: Family, path: str, array: Array, heads: int) -> Array:
        """Add the adapter's change to the parameter at a path; `heads` is the number of attention heads."""
        for tensor_slice in family.tensor_slices(path):
            if tensor_slice.name in family.without_lora:
                continue
            for key in (tensor_slice.name, *(prefix + tensor_slice.name for prefix in family.prefixes)):
                if key in self.factors:
                    self.used.add(key)
                    added = self.factors[key].product()
                    if added.shape != tensor_slice.whole(array.shape):
                        raise BertcliError(
                            f"{self.folder.path} changes '{key}' by a matrix of shape {added.shape}, which does not "
                            "fit the base: give the base that it was trained on."
                        )
                    array = array + tensor_slice.cut(added, heads)
                    array.setflags(write=False)
        return array

    def check(self, family: Family) -> None:
        """Raise BertcliError if the adapter changes weights that the network does not have."""
        # Weights of heads that were left out, or that bertcli does not run, do not matter.
        not_loaded = (
            *family.ignored_prefixes,
            *family.without_lora,
            *(family.head_tensor_prefix(head) or " " for head in family.head_names),
        )
        for key in self.factors.keys() - self.used:
            if not family.bare_name(key).startswith(not_loaded):
                raise BertcliError(
                    f"{self.folder.path} changes {quoted(key)}, which its base does not have: give the base that it "
                    "was trained on."
                )


def open_adapter(folder: Folder) -> Adapter:
    """Open the adapter in a folder. Errors: BertcliError naming file and tensor or setting."""
    settings = read_adapter(folder)
    weights = next((folder.reading(name) for name in ADAPTER_FILES if folder.has(name)), None)
    if weights is None:
        raise BertcliError(
            f"{folder.path} has an adapter_config.json, but no {' or '.join(ADAPTER_FILES)}: fetch the adapter again."
        )
    pairs, whole = _matrices(weights)
    _check_targets(settings.config, pairs)
    factors = {f"{module}.weight": _factors(settings, module, pair, weights) for module, pair in pairs.items()}
    return Adapter(folder, factors, whole, settings.architectures, settings.saved)


Pair = dict[str, StoredTensor]  # "lora_A" and "lora_B" of a module, or those of embeddings


def _matrices(weights: Path) -> tuple[dict[str, Pair], dict[str, StoredTensor]]:
    """Read an adapter's file: the pair of matrices of each module, and the tensors that replace the base's."""
    pairs: dict[str, Pair] = {}
    whole: dict[str, StoredTensor] = {}
    for stored, tensor in unwrapped(open_file(weights)).items():
        name = stored.removeprefix(PREFIX)
        match = FACTORS.fullmatch(name)
        if not stored.startswith(PREFIX) or (match is None and "lora_" in name):
            raise BertcliError(
                f"{weights} has the tensor {quoted(stored)}, which is no matrix of LoRA: use another adapter."
            )
        if match is None:
            whole[name.replace(".base_layer.", ".")] = tensor
        else:
            pairs.setdefault(match[1] or match[3], {})[match[2] or match[4]] = tensor
    return pairs, whole


def _factors(settings: AdapterSettings, module: str, pair: Pair, weights: Path) -> Factors:
    """Make the change of a module's weight. Errors: BertcliError for matrices that do not fit each other."""
    transposed = any("embedding" in name for name in pair)
    names = ("lora_embedding_A", "lora_embedding_B") if transposed else ("lora_A", "lora_B")
    if pair.keys() != {*names}:
        raise BertcliError(f"{weights} lacks one of the two matrices of {quoted(module)}: use another adapter.")
    a, b = (pair[name] for name in names)
    rank = a.shape[0] if a.shape else 0
    matrices = len(a.shape) == 2 and b.shape[1:] == (rank,)
    convolution = len(a.shape) == 3 and b.shape[1:] == (rank, 1)
    if not rank or not (matrices or convolution):
        raise BertcliError(
            f"{weights} has matrices of shapes {a.shape} and {b.shape} for {quoted(module)}, whose product does not "
            "exist: use another adapter."
        )
    divisor = math.sqrt(rank) if settings.rslora else rank
    return Factors(a.float32(), b.float32(), _alpha(settings, module) / divisor, transposed)


def _alpha(settings: AdapterSettings, module: str) -> float:
    """Find a module's lora_alpha: that of the first pattern that its name ends with, else the general one."""
    for pattern, alpha in settings.alpha_pattern.items():
        bare = pattern.removeprefix("^")
        is_anchored = bare != pattern
        if module == bare or (module.endswith(f".{bare}") and not is_anchored):
            return alpha
    return settings.alpha


def _check_targets(config: JsonSettings, modules: Iterable[str]) -> None:
    """Refuse tensors of modules that the settings exclude: peft would not load them."""
    targets, excluded = config.get("target_modules"), config.get("exclude_modules")
    for module in modules:
        whole_name = isinstance(targets, list) and module in [str(name).replace(COMPILED, "") for name in targets]
        for key, is_excluded in (
            ("target_modules", isinstance(targets, list) and not _named(module, targets)),
            ("exclude_modules", isinstance(excluded, list) and _named(module, excluded)),
            # peft checks the layer's number only if a target is the end of a name, not the whole name.
            ("layers_to_transform", not whole_name and not _in_layers(config, module)),
        ):
            if is_excluded:
                raise config.refused(key, f", but there are tensors of {quoted(module)}")


def _in_layers(config: JsonSettings, module: str) -> bool:
    """True if a module lies in one of the layers_to_transform; the layer's number follows a layers_pattern, if set."""
    layers, patterns = config.get("layers_to_transform"), config.get("layers_pattern")
    if layers is None or layers == []:
        return True
    names = [patterns] if isinstance(patterns, str) else patterns or []
    if not isinstance(names, list) or not all(
        isinstance(name, str) and re.fullmatch(r"[\w.]+", name) for name in names
    ):
        raise config.refused("layers_pattern")
    before = "|".join(map(re.escape, filter(None, names))) or "[^.]*"
    number = re.search(rf"(?:^|\.)(?:{before})\.(\d+)\.", module)
    return number is not None and int(number[1]) in (layers if isinstance(layers, list) else [layers])


def _named(module: str, names: Iterable[Any]) -> bool:
    """True if one of the names is the module's, or the end of it."""
    bare = [name.replace(COMPILED, "") for name in names if isinstance(name, str)]
    return any(module == name or module.endswith(f".{name}") for name in bare)
