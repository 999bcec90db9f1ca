"""Find the family of a config.json, or of a variant's name, and the heads that a checkpoint has.

Each file of this folder that has a FAMILY is one, and each that a plugin brings. Files are imported one after the other
until one has the model_type; no list names them. weights/loading.py reads the tensors that a family's table names.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from bertcli.errors import BertcliError, nearest, quoted
from bertcli.models.config import Config, texts
from bertcli.models.tensor_names import TensorSlice, tensor_slices
from bertcli.network.heads import HEADS, Network
from bertcli.network.module import optional_parts

# Of these heads a checkpoint has one. If config.json's architectures name none of them, the tensors are taken for the
# first of the family's heads that fits.
EXCLUSIVE_HEADS = tuple(name for name, head in HEADS.items() if head.exclusive)
QA_OUTPUT = "qa_outputs."  # the only name of such a head that no other has

JINA_V5 = "jina_embeddings_v5"  # Qwen3 or EuroBERT, with an adapter for each task
ALIBI = {"alibi_starting_size", "feed_forward_type"}  # keys by which a file of code of its own is not BERT's


@dataclass(frozen=True, eq=False, repr=False)
class Family:
    """A family: its modules, one configuration, and one table of names (none: it is in no files)."""

    # Every model_type in config.json, with what transformers' classes for it are called before Model, ForMaskedLM, …
    types: Mapping[str, str]
    config: type[Config]
    network: type[Network]
    prefixes: tuple[str, ...]  # of the tensors of the base model; one that is saved alone lacks it
    names: tuple[str, ...]  # tables of our paths and the tensors' names in files: see tensor_names.py
    variants: Mapping[str, Mapping[str, Any]]  # by its name, what of each published size is not the default
    base_pooler: bool = True  # whether a model that is built without a head has the pooler, if there is one
    ignored_prefixes: tuple[str, ...] = ()  # how names of tensors begin that nothing here reads
    hints: Mapping[str, str] = field(default_factory=dict)  # of a head that is missing, what to do
    # Tensors whose modules peft changes (LoRA), or copies (modules_to_save), where no pass of its model sees it: the
    # pass reads the base's weight, or another module's.
    without_lora: tuple[str, ...] = ()
    without_copies: tuple[str, ...] = ()
    zero_masked_embeddings: bool = False  # whether a token that is not attended to has no embedding in transformers
    custom_code: bool = False  # whether its models are published with code of their own, which does what ours does
    prompts: tuple[str, ...] = ()  # of sentence models, whose folders may not say so

    def tensor_slices(self, path: str) -> tuple[TensorSlice, ...]:
        """The tensors, or slices of tensors, that may hold the parameter at a path of the network."""
        return tensor_slices(self.names, path)

    def head_tensor_prefix(self, head: str) -> str | None:
        """Return the prefix of the names of a head's first layer in files; None for a head that no file has."""
        for layer in ("transform", "dense", "output"):
            for tensor_slice in self.tensor_slices(f"{head}.{layer}.weight"):
                return tensor_slice.name.removesuffix("weight")
        # A head without layers has a bias of its own, or a decoder, whose whole name is its prefix.
        slices = self.tensor_slices(f"{head}.bias") or self.tensor_slices(f"{head}.decoder")
        return slices[0].name if slices else None

    def prefix_in(self, names: Collection[str]) -> str:
        """The prefix of the base model's tensors in a file with these names; "" without one."""
        return next((prefix for prefix in self.prefixes if any(name.startswith(prefix) for name in names)), "")

    def bare_name(self, name: str) -> str:
        """Remove the prefix of the base model from a tensor's name."""
        return next((name.removeprefix(prefix) for prefix in self.prefixes if prefix and name.startswith(prefix)), name)

    def variant(self, name: str) -> Config:
        """The configuration of a published size."""
        return self.config(**self.variants[name])

    @cached_property
    def head_names(self) -> tuple[str, ...]:
        """The heads that models of this family may have."""
        return optional_parts(self.network)


def families(likely: str = "bert") -> Iterator[Family]:
    """Yield every family, the likely one first, then BERT's; a file is imported when it is reached, plugins at last."""
    taken: set[str] = set()
    for name in sorted(_modules(), key=lambda name: (name != likely, name != "bert", name)):
        member = getattr(import_module(f"{__package__}.{name}"), "FAMILY", None)
        if member is not None:
            yield member
            taken.update(member.types)
    from bertcli.extensions import plugin_parts  # late: nothing of it is needed for a family of the core

    def unfit(module: str, member: Family) -> str | None:
        both = sorted(taken & member.types.keys())
        taken.update(member.types)
        return f"the model_type {both[0]!r} is taken" if both else None

    yield from plugin_parts("families", "FAMILY", Family, unfit)


@cache
def _modules() -> tuple[str, ...]:
    """The names of the files here; listing them takes 0.4 ms, a tenth of encoding a short text by a small model."""
    return tuple(module.name for module in iter_modules([str(Path(__file__).parent)]))


def family(model_type: str) -> Family:
    """Find the family of a model_type. Errors: BertcliError for one that is not supported."""
    for member in families(str(model_type).replace("-", "_")):
        if isinstance(model_type, str) and model_type in member.types:
            return member
    types = ", ".join(name for member in families() if member.names for name in member.types)
    raise BertcliError(f"bertcli does not run models of type {quoted(model_type)}; it runs {types}.")


def parse_config(data: Mapping[str, Any], file: Path | None = None) -> Config:
    """Parse config.json's keys to a configuration.

    Errors: BertcliError for an unsupported family or invalid values; it begins with the name of the `file`, if given.
    """
    try:
        model_type = _model_type(data)
        return family(model_type).config.parse({**data, "model_type": model_type})
    except BertcliError as error:
        raise BertcliError(f"{file}: {error}" if file else str(error)) from None


def _model_type(data: Mapping[str, Any]) -> Any:
    """Return config.json's model_type, else the one its architectures imply; BERT's oldest files have neither."""
    model_type, classes = data.get("model_type"), texts(data, "architectures")
    if model_type in (None, "bert") and ALIBI & {key for key, value in data.items() if value is not None}:
        return "jina_bert"
    if model_type == JINA_V5:
        return "qwen3" if {"use_sliding_window", "max_window_layers"} & data.keys() else "eurobert"
    if model_type is not None or not classes:
        return "bert" if model_type is None else model_type
    type_of_prefix = {prefix: model_type for member in families() for model_type, prefix in member.types.items()}
    matching = [prefix for prefix in type_of_prefix if any(name.startswith(prefix) for name in classes)]
    # The longest: a class DebertaV2Model begins with "Deberta", too.
    return type_of_prefix[max(matching, key=len)] if matching else classes[0]


def variants() -> dict[str, Family]:
    """The family of every published size, by its name."""
    return {name: member for member in families() for name in member.variants}


def variant_config(name: str) -> Config:
    """The configuration of a published size by its name."""
    member = next((member for member in families() if name in member.variants), None)
    if member is None:
        raise BertcliError(f"There is no variant {quoted(name)}. {nearest(name, variants())}")
    return member.variant(name)


def named_heads(config: Config, member: Family) -> tuple[str, ...]:
    """List the heads of config.json's architectures, with the pooler if they read it."""
    heads = []
    for head in member.head_names:
        # A head that a kind adds to a family is in no class of transformers.
        endings = HEADS[head].classes if head in HEADS else ()
        if any(name.endswith(endings) for name in config.architectures):
            heads.append(head)
    # A class for pre-training has the ending of the mlm head, too, but one that finds replaced tokens predicts none.
    if "rtd" in heads and "mlm" in heads:
        heads.remove("mlm")
    # The class without a head has a pooler in some families only.
    if "pooler" in heads and not member.base_pooler:
        heads.remove("pooler")
    return parse_heads(heads, member) if heads else ()


def parse_heads(heads: str | tuple[str, ...] | list[str], member: Family) -> tuple[str, ...]:
    """Heads from a list or from "mlm,nsp" or "none", in the family's order, with the pooler where they read it."""
    names = [name.strip() for name in heads.split(",")] if isinstance(heads, str) else list(heads)
    if names == ["none"]:
        return ()
    title, choices = member.config.title, ", ".join(member.head_names)
    for name in names:
        if not choices:
            raise BertcliError(f"There is no head '{name}': {title} has none, so leave out the heads.")
        if name not in member.head_names:
            raise BertcliError(f"There is no head '{name}'; choose from {choices} (the heads of {title}), or none.")
    if member.network.pooled & {*names}:
        names.append("pooler")
    return tuple(name for name in member.head_names if name in names)


def heads_in(names: Collection[str], config: Config, member: Family) -> tuple[str, ...]:
    """List the heads that a file with tensors of these names holds.

    A head that is only partly stored counts; its missing tensor is an error when the network is built.
    """
    prefix = member.prefix_in(names)
    bare_names = [name.removeprefix(prefix) for name in names]
    named = set(named_heads(config, member))
    prefixes = {head: member.head_tensor_prefix(head) for head in member.head_names}
    beginnings = {head: beginning for head, beginning in prefixes.items() if beginning}
    stored = {head for head, beginning in beginnings.items() if any(name.startswith(beginning) for name in bare_names)}
    # A decoder that is tied to the embeddings and has no bias leaves its head without tensors of its own.
    tied = {head for head in ("mlm", "lm") if config.tie_word_embeddings and not member.tensor_slices(f"{head}.bias")}
    stored |= tied & named
    if "pooler" in beginnings and "pooler" not in stored:
        reading = member.network.pooled & stored
        # The pooler is missing. If config.json names a head that reads it, the file is damaged: keep "pooler", so that
        # building the network reports the missing tensor. Otherwise leave those heads out.
        stored = stored | {"pooler"} if reading & named else stored - reading
    heads = [head for head in member.head_names if head in stored]
    rivals = [head for head in heads if head in EXCLUSIVE_HEADS and beginnings[head] != QA_OUTPUT]
    chosen = next((head for head in rivals if head in named), rivals[0] if rivals else None)
    return tuple(head for head in heads if head not in rivals or head == chosen)


def with_stored_labels(
    config: Config, member: Family, stored: Mapping[str, Any], heads: tuple[str, ...], saved: Collection[str]
) -> Config:
    """Set num_labels to the number of the classifier's rows, if config.json neither names nor counts the labels.

    Where it does both, and they disagree, the rows decide.

    stored: the tensors of the file of weights, by name. heads: the heads in that file. saved: the heads that an adapter
    brings. If the classifier is among these, num_labels is always set, since config.json is the base's.
    """
    head = next((head for head in ("classifier", "token_classifier") if head in heads), None)
    names = [tensor_slice.name for tensor_slice in member.tensor_slices(f"{head}.output.weight")]
    name = next((name for name in names if name in stored), None)
    if name is None or not stored[name].shape:
        return config
    labels = stored[name].shape[0]
    if name in saved:
        # The base's names of labels fit only if there are as many.
        id2label = config.id2label if len(config.id2label) == labels else {}
        return replace(config, num_labels=labels, id2label=id2label)
    is_unstated = not config.id2label and config.num_labels == Config.num_labels
    return replace(config, num_labels=labels) if is_unstated or labels == len(config.id2label) else config
