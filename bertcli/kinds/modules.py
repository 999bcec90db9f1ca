"""Read the list of modules of a sentence-transformers folder: the steps from a network's output to a vector.

Source of the files' meaning: the modules of sentence-transformers 2 to 6. The settings of a single module are read in
pooling.py and layers.py, and what only one kind has in its file. Nothing is computed here.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bertcli.errors import quoted
from bertcli.folder.files import Folder, unusable
from bertcli.folder.layout import Layout
from bertcli.folder.modules import MODULES_FILE, SENTENCE, ModuleEntry
from bertcli.kinds.kind import UNSPECIFIED
from bertcli.kinds.layers import read_dense, read_norm
from bertcli.kinds.pooling import DEFAULT_POOLING, read_pooling
from bertcli.kinds.routes import ONE_ROUTE, Router

UNASKED = "since this cached copy has no modules.json, which the Hub may have"


@dataclass
class Modules:
    """What the modules say, in their order.

    layers     the layers after the network, or after pooling; the last of them decides what they are for
    width      the length of the last module's vector; None if unknown
    output     the module_output_name of the last Dense layer: SCORES in a cross-encoder
    folders    the folders of modules that one kind reads, by the names of their classes
    """

    pooling: tuple[str, ...] = ()
    reason: str = ""
    include_prompt: bool = True
    normalize: bool = False
    layers: list[Any] = field(default_factory=list)
    width: int | None = None
    output: str = ""
    folders: dict[str, Folder] = field(default_factory=dict)


def read_modules(layout: Layout) -> Modules:
    """Read the modules of a folder, one after the other. Errors: BertcliError."""
    modules = Modules(reason=f"{DEFAULT_POOLING[0]}, {UNSPECIFIED if layout.is_known else UNASKED}")
    # The modules of a late-interaction model work on the vectors of tokens.
    input_name = "token_embeddings" if layout.keeps_tokens else SENTENCE
    for module in layout.modules:
        _read_module(modules, layout, module, input_name)
    _check_task(layout)
    return modules


def _read_module(modules: Modules, layout: Layout, module: ModuleEntry, input_name: str) -> None:
    """Read the settings of a module."""
    folder = layout.folder.within(module.path)
    match module.type:
        case "Pooling":
            pooling = read_pooling(folder.object("config.json"))
            modules.pooling, modules.width, modules.include_prompt = pooling
            modules.reason = f"{' + '.join(pooling.modes)}, from {module.path}/config.json"
        case "Dense":
            dense, modules.output = read_dense(folder, modules.width, input_name)
            modules.width = len(dense.weight)
            modules.layers.append(dense)
        case "LayerNorm":
            modules.layers.append(read_norm(folder, modules.width))
        case "Normalize":
            folder.optional("config.json").one_of("module_input_name", (input_name,))
            modules.normalize = True
        case other:
            modules.folders[other] = folder


def settings(layout: Layout, modules: Modules, similarity: str = "cosine") -> dict[str, Any]:
    """The settings that every kind has, as fields of `Kind`. similarity: the kind's own, if the folder names none."""
    named = layout.settings.get("similarity_fn_name")
    return {
        "pooling": modules.pooling,
        "normalize": modules.normalize,
        "dense": tuple(modules.layers),
        "reason": modules.reason,
        "prompts": layout.prompts.named,
        "prompt": layout.prompts.default,
        "include_prompt": modules.include_prompt,
        "truncate_dim": layout.settings.positive("truncate_dim"),
        "routes": ONE_ROUTE if layout.router is None else Router(layout),
        "similarity": similarity if named is None else quoted(named).strip("'"),
    }


def check_layers(layout: Layout) -> None:
    """Refuse a LayerNorm in a folder that is no cross-encoder's."""
    if "LayerNorm" in layout.module_types:
        raise unusable(_modules_file(layout), "lists a LayerNorm, which only a cross-encoder may have")


def _modules_file(layout: Layout) -> Path:
    """The path of modules.json, for messages."""
    return layout.folder.file(MODULES_FILE)


def _check_task(layout: Layout) -> None:
    """Refuse modules that do not fit the network's transformer_task."""
    task = layout.transformer_settings.task
    # LogitScore reads the logits of a language model, and no other module does.
    fits = (task == "text-generation") == ("LogitScore" in layout.module_types)
    # SPLADE folders of older versions name no task.
    if task and (task == "fill-mask") != ("SpladePooling" in layout.module_types):
        fits = False
    if not fits:
        raise unusable(_modules_file(layout), f"lists modules that do not fit the transformer_task {quoted(task)}")
