"""`bertcli info`: a model's network, files and sentence settings, and the commands that can use it.

`info` makes the record of one model, `table` its lines; `models_here` and `listing` do so for `bertcli info` without a
model: all bundled and cached ones. Which commands can use a model is decided in capabilities.py, not here.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from bertcli.capabilities import commands, purpose
from bertcli.errors import BertcliError, number_of, quoted
from bertcli.folder.cache import cache_folder, cached, missing
from bertcli.folder.files import INDEX_ENDING, TENSOR_ENDINGS, Folder, weights_file
from bertcli.folder.folder_types import files_of_types
from bertcli.folder.hub import sample
from bertcli.folder.layout import Layout
from bertcli.folder.modules import MODULES_FILE
from bertcli.kinds.read import lines_of_kinds
from bertcli.loaded_model import LoadedModel
from bertcli.models.registry import parse_config
from bertcli.names import SAMPLES
from bertcli.network.module import parameters
from bertcli.tasks.compute.encode import EncodeSteps
from bertcli.tasks.encode import EncodeOptions
from bertcli.tasks.running.task import length_limit
from bertcli.weights.lora import open_adapter
from bertcli.weights.tensors import open_tensors

logger = logging.getLogger("bertcli")
SIZES = ("num_hidden_layers", "hidden_size", "num_attention_heads", "intermediate_size", "vocab_size")
# Left out for a model without layers, such as a static one.
OF_LAYERS = ("num_attention_heads", "intermediate_size")
# Keys of config.json that are reported although the model cannot be opened.
KEPT = (*SIZES, "max_position_embeddings")


def info(folder: Folder, name: str) -> dict[str, Any]:
    """The record of `bertcli info NAME`. `runs`: the model can be opened; `problems`: messages of what is wrong.

    Keys without a value are left out. Errors: none but those of the operating system; a BertcliError becomes a problem.
    """
    known: dict[str, Any] = {"model": name, "folder": str(folder.path.resolve()), "runs": False, "problems": []}
    with _quiet():
        try:
            model = LoadedModel.open(folder, name, text=False)
        except BertcliError as error:
            known["problems"].append(str(error))
            return known | _without_network(folder)
        record = {**known, "runs": True, **_network(model), **_text(model, known["problems"])}
        record["commands"] = [capability._asdict() for capability in commands(model)]
        return record


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the log: opening a model and planning `encode` log notes that are meant for those who run a command."""
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)


def _network(model: LoadedModel) -> dict[str, Any]:
    """The part of the record about the network, its prediction heads, its weight files and its adapter."""
    config, assigned = model.config, parameters(model.network)
    # By identity, so that a tied array counts once.
    arrays = {id(weight.array): weight.array for weight in assigned}
    total = sum(array.size for array in arrays.values())
    record: dict[str, Any] = {
        "kind": purpose(model),
        "family": config.title.removeprefix("a "),
        "model_type": config.model_type,
        "architectures": list(config.architectures),
        "heads": list(model.heads),
        **{key: getattr(config, key) for key in SIZES if config.num_hidden_layers or key not in OF_LAYERS},
        "max_tokens": config.max_tokens,
        "parameters": total,
        **({"active_parameters": total - config.idle_parameters} if config.idle_parameters else {}),
        "dtypes": sorted({use.dtype for use in model.tensor_uses if use.path}),
        "files": _files(model.folder),
        "notes": list(model.notes),
    }
    if model.folder is not None and model.folder.adapter is not None:
        adapter = open_adapter(model.folder.adapter)
        record["adapter"] = {
            "folder": str(adapter.folder.path),
            "changes": len(adapter.factors),
            "ranks": sorted({len(factor.a) for factor in adapter.factors.values()}),
            "whole": sorted(adapter.whole),
        }
    decoder = next((weight.array for weight in assigned if weight.path == "mlm.decoder"), None)
    if decoder is not None:
        record["tied"] = any(weight.array is decoder for weight in assigned if weight.path != "mlm.decoder")
    if {"classifier", "token_classifier"}.intersection(model.heads):
        record["labels"] = list(config.labels)
    return {**record, **model.readable_kind.facts}


def _text(model: LoadedModel, problems: list[str]) -> dict[str, Any]:
    """The part of the record about tokenizer and sentence settings; errors in them are appended to `problems`."""
    record: dict[str, Any] = {}
    try:
        tokenizer = model.tokenizer
        record |= {"limit": length_limit(model, None), "tokens": tokenizer.vocab_size}
        record["mask_token"] = None if tokenizer.special_id("mask") is None else tokenizer.mask_token
    except BertcliError as error:
        problems.append(str(error))
    try:
        kind = model.kind
        record["modules"] = _modules(model.folder)
        lower_case = model.layout is not None and model.layout.transformer_settings.lower_case
        settings = {"prompts": dict(kind.prompts), "prompt": kind.prompt, "do_lower_case": lower_case}
        record |= {key: value for key, value in settings.items() if value}
        # A folder with modules that is made for another task than `encode` is whole without the steps of it.
        made_for_another = kind.own_pooling == "auto" and kind.refusal_of_one_vector() is not None
        if record["modules"] and made_for_another:
            return record
        steps = EncodeSteps.make(model, EncodeOptions(pooling=kind.own_pooling))
        if steps.pooling:
            record |= {"pooling": list(steps.pooling), "pooling_from": steps.reason.partition(", ")[2]}
        record |= {"normalize": steps.normalize, "width": steps.width}
    except BertcliError as error:
        problems.append(str(error))
    return record


def _modules(folder: Folder | None) -> list[str]:
    """The class names in modules.json (Transformer, Pooling, …), in order; empty without that file."""
    if folder is None or not folder.has(MODULES_FILE):
        return []
    listed = folder.value(MODULES_FILE)
    entries = [entry for entry in (listed if isinstance(listed, list) else ()) if isinstance(entry, dict)]
    return [str(entry.get("type")).rpartition(".")[2] for entry in entries]


def _files(folder: Folder | None) -> list[dict[str, Any]]:
    """The weight files {name, bytes} of the network and of the modules in subfolders; an index counts as its shards."""
    if folder is None:
        return []
    root = folder.path
    stored = [path for path in (*root.glob("*"), *root.glob("*/*")) if path.suffix in TENSOR_ENDINGS]
    used = set()
    for subfolder in {path.parent for path in stored}:
        file = weights_file(Folder(subfolder))
        if file is None:
            continue
        if file.name.endswith(INDEX_ENDING):
            used |= {path for path in stored if path.parent == subfolder}
        else:
            used.add(file)
    # Beside the network's there may be files of small layers.
    beside = [root / name for name in files_of_types()]
    used.update(path for path in beside if path in stored and path.is_file())
    return [{"name": path.relative_to(root).as_posix(), "bytes": path.stat().st_size} for path in sorted(used)]


def _without_network(folder: Folder) -> dict[str, Any]:
    """The part of the record for a model that cannot be opened: sizes from config.json and from the weight files."""
    record: dict[str, Any] = {}
    try:
        transformer = Layout(folder).transformer
        config = transformer.optional("config.json")
        record |= _usable(config)
        record["modules"] = _modules(folder)
        tensors = open_tensors(transformer).values()
        record["parameters"] = sum(tensor.array.size for tensor in tensors)
        record["dtypes"] = sorted({tensor.dtype for tensor in tensors})
    except BertcliError:
        # `info` has reported the error already; what was read before it stays in the record.
        pass
    return record | {"files": _files(folder), "commands": []}


# ------------------------------------------------------------------------------------- models on this machine


def models_here(cache_dir: str | None = None) -> list[dict[str, Any]]:
    """A record for each bundled model and each one in the Hub's cache: name, class, size, missing files."""
    records: list[dict[str, Any]] = []
    for name in SAMPLES:
        records.append({"model": name, "where": "bundled", **_described(Folder(sample(name)))})
    for name, revision, path in cached(cache_folder(cache_dir)):
        folder = Folder(path)
        record: dict[str, Any] = {"model": name, "where": "cache"}
        if revision != "main":
            record["revision"] = revision
        record |= _described(folder)
        if lost := missing(folder):
            record["lacks"] = lost
        records.append(record)
    return records


def _usable(config: Mapping[str, Any]) -> dict[str, Any]:
    """The keys of a config.json that are reported unread, where they have the type that they should have."""
    usable = {key: config[key] for key in KEPT if type(config.get(key)) is int}
    if isinstance(config.get("model_type"), str):
        usable["model_type"] = config["model_type"]
    classes = config.get("architectures")
    if isinstance(classes, list) and all(isinstance(name, str) for name in classes):
        usable["architectures"] = classes
    return usable


def _described(folder: Folder) -> dict[str, Any]:
    """A model's family, classes and bytes on disk, from its small files: the weights are not opened."""
    record: dict[str, Any] = {"bytes": sum(path.stat().st_size for path in folder.path.rglob("*") if path.is_file())}
    try:
        layout = Layout(folder)
        config = layout.transformer.optional("config.json")
        title = layout.folder_type.title or parse_config(config).title
        classes = ", ".join(_modules(folder)) or ", ".join(_usable(config).get("architectures", []))
        what = layout.folder_type.description(layout.type_settings) or classes
        return {**record, "runs": True, "family": title.removeprefix("a "), "what": what}
    except BertcliError as error:
        return {**record, "runs": False, "what": str(error)}


# ------------------------------------------------------------------------------------------------ for people


def table(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The record of `info` as (name, text) lines of a table; lines without a value are left out."""
    lines = {
        "Kind": record.get("kind"),
        "Family": _joined(
            record.get("family"), f"type {quoted(record['model_type'])}" if record.get("model_type") else None
        ),
        "Classes": _joined(*map(str, record.get("architectures") or ())),
        "Heads": ", ".join(record["heads"]) or "none" if "heads" in record else None,
        "Network": _sizes(record),
        "Parameters": _joined(
            f"{record['parameters']:,}" if "parameters" in record else None,
            f"of which a token uses {record['active_parameters']:,}" if "active_parameters" in record else None,
        ),
        "Weights": _weights(record),
        "Tied": record.get("tied") and "the predictions' matrix is the embeddings'",
        "Vocabulary": f"{record['vocab_size']:,}" if "vocab_size" in record else None,
        "Limit": _limit(record),
        "Labels": ", ".join(record.get("labels", ())),
        **dict(lines_of_kinds(record)),
        "Modules": ", ".join(record.get("modules", ())),
        "Vectors": _vectors(record),
        "Prompts": ", ".join(f"{name} {quoted(text)}" for name, text in record.get("prompts", {}).items() if text),
        "Prepended": quoted(record["prompt"]) if record.get("prompt") else None,
        "Lower case": "every text, before it is tokenized" if record.get("do_lower_case") else None,
        "Adapter": _adapter(record.get("adapter")),
        "Folder": record["folder"],
        "Note": " ".join(record.get("notes", ())),
        "Wrong" if record["runs"] else "Does not run": " ".join(record["problems"]),
    }
    return [(name, str(text)) for name, text in lines.items() if text]


def _limit(record: Mapping[str, Any]) -> str | None:
    if "limit" not in record:
        return None
    return f"{record['limit']:,} tokens a text; the network has {record['max_tokens']:,} positions"


def _adapter(adapter: Mapping[str, Any] | None) -> str | None:
    if adapter is None:
        return None
    count = len(adapter["whole"])
    whole = f"; {number_of(count, 'tensor')} {'is' if count == 1 else 'are'} its own" if count else ""
    ranks = ", ".join(map(str, adapter["ranks"]))
    return f"LoRA of rank {ranks} changes {number_of(adapter['changes'], 'weight')}{whole} ({adapter['folder']})"


def _joined(*names: str | None) -> str:
    return ", ".join(dict.fromkeys(filter(None, names)))


def _sizes(record: Mapping[str, Any]) -> str:
    words: dict[str, Callable[[int], str]] = {
        "num_hidden_layers": lambda size: number_of(size, "layer"),
        "hidden_size": lambda size: f"width {size:,}",
        "num_attention_heads": lambda size: number_of(size, "attention head"),
        "intermediate_size": lambda size: f"feed-forward {size:,}",
    }
    sizes = {key: record.get(key) for key in words}
    return ", ".join(words[key](size) for key, size in sizes.items() if type(size) is int)


def _weights(record: Mapping[str, Any]) -> str:
    files = [f"{file['name']} ({_megabytes(file['bytes'])})" for file in record["files"]]
    shown_files = [*files[:3], f"{len(files) - 3} more"] if len(files) > 4 else files
    dtypes = record.get("dtypes", ())
    stored = [f"stored as {' and '.join(dtypes)}, computed in float32"] if dtypes else []
    return ", ".join([*shown_files, *stored])


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _vectors(record: Mapping[str, Any]) -> str | None:
    if "width" not in record:
        return None
    pooling = record.get("pooling")
    how = "one for each token"
    if pooling is not None:
        how = ", ".join(filter(None, (f"pooled by {' + '.join(pooling)}", record["pooling_from"])))
    return f"{record['width']:,} numbers, {how}" + (", scaled to length 1" if record["normalize"] else "")


def listing(models: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """The rows of a table of models: name, where, size, and what each is."""
    rows: list[tuple[str, ...]] = []
    for model in models:
        lost = f" (lacks {', '.join(model['lacks'][:3])})" if "lacks" in model else ""
        what = _joined(model.get("family"), model["what"])
        name = f"{model['model']}@{model['revision']}" if "revision" in model else model["model"]
        rows.append((name, model["where"], _megabytes(model["bytes"]), f"{what}{lost}"))
    return rows
