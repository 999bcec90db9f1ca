"""`bertcli info`: a model's network, files and sentence settings, and the commands that can use it.

`info` makes the record of one model, `table` its lines; `listed` and `listing` do so for `bertcli info` without a
model: all bundled and cached ones. Which commands can use a model is decided in capabilities.py, not here.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from bertcli.capabilities import commands, purpose
from bertcli.errors import BertcliError, number_of, quoted
from bertcli.folder.cache import cache_folder, cached, missing
from bertcli.folder.files import INDEX_ENDING, LAYER_FILES, TENSOR_ENDINGS, Folder, weights_file
from bertcli.folder.hub import SAMPLES, sample
from bertcli.folder.layout import Layout
from bertcli.folder.modules import MODULES_FILE
from bertcli.loaded_model import LoadedModel
from bertcli.models.registry import parse_config
from bertcli.network.module import parameters
from bertcli.tasks.compute.encode import Plan
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
            model = LoadedModel.at(folder, name, text=False)
        except BertcliError as error:
            known["problems"].append(str(error))
            return known | _without_network(folder)
        found = {**known, "runs": True, **_network(model), **_text(model, known["problems"])}
        found["commands"] = [capability._asdict() for capability in commands(model)]
        return found


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
    found: dict[str, Any] = {
        "kind": purpose(model),
        "family": config.title.removeprefix("a "),
        "model_type": config.model_type,
        "architectures": list(config.architectures),
        "heads": list(model.heads),
        **{key: getattr(config, key) for key in SIZES if config.num_hidden_layers or key not in OF_LAYERS},
        "max_tokens": config.max_tokens,
        "parameters": total,
        **({"active_parameters": total - config.idle_parameters} if config.idle_parameters else {}),
        "dtypes": sorted({use.dtype for use in model.uses if use.path}),
        "files": _files(model.folder),
        "notes": list(model.notes),
    }
    adapter = None if model.layout is None else open_adapter(model.layout)
    if adapter is not None:
        found["adapter"] = {
            "folder": str(adapter.folder.path),
            "changes": len(adapter.factors),
            "ranks": sorted({len(factor.a) for factor in adapter.factors.values()}),
            "whole": sorted(adapter.whole),
        }
    decoder = next((weight.array for weight in assigned if weight.path == "mlm.decoder"), None)
    if decoder is not None:
        found["tied"] = any(weight.array is decoder for weight in assigned if weight.path != "mlm.decoder")
    if {"classifier", "token_classifier"}.intersection(model.heads):
        found["labels"] = list(config.labels)
    if model.layout is not None and model.layout.gliner is not None:
        settings = model.layout.gliner
        found["spans"] = {
            "max_words": settings.max_width,
            "window_words": settings.max_len,
            "width": settings.hidden_size,
            "backbone": settings.model_name,
        }
    return found


def _text(model: LoadedModel, problems: list[str]) -> dict[str, Any]:
    """The part of the record about tokenizer and sentence settings; errors in them are appended to `problems`."""
    found: dict[str, Any] = {}
    try:
        tokenizer = model.tokenizer
        found |= {"limit": length_limit(model, None), "tokens": tokenizer.vocab_size}
        found["mask_token"] = None if tokenizer.special_id("mask") is None else tokenizer.mask_token
    except BertcliError as error:
        problems.append(str(error))
    try:
        kind = model.kind
        found["modules"] = _modules(model.folder)
        lower_case = model.layout is not None and model.layout.limits.lower_case
        settings = {"prompts": dict(kind.prompts), "prompt": kind.prompt, "do_lower_case": lower_case}
        found |= {key: value for key, value in settings.items() if value}
        has_token_vectors_only = kind.interaction is not None and not kind.gives_one_vector
        plan = Plan.make(model, EncodeOptions(pooling="none" if has_token_vectors_only else "auto"))
        if not has_token_vectors_only:
            found |= {"pooling": list(plan.pooling), "pooling_from": plan.reason.partition(", ")[2]}
        found |= {"normalize": plan.normalize, "width": plan.width}
    except BertcliError as error:
        # A folder with modules whose message begins so was made for another task than `encode`: that is no problem.
        if not found.get("modules") or "This checkpoint" not in str(error):
            problems.append(str(error))
    return found


def _modules(folder: Folder | None) -> list[str]:
    """The class names in modules.json (Transformer, Pooling, …), in order; empty without that file."""
    if folder is None or not folder.has(MODULES_FILE):
        return []
    entries = [entry for entry in folder.value(MODULES_FILE) if isinstance(entry, dict)]
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
    for name in LAYER_FILES:
        if (root / name).is_file():
            used.add(root / name)
    return [{"name": path.relative_to(root).as_posix(), "bytes": path.stat().st_size} for path in sorted(used)]


def _without_network(folder: Folder) -> dict[str, Any]:
    """The part of the record for a model that cannot be opened: sizes from config.json and from the weight files."""
    found: dict[str, Any] = {}
    try:
        transformer = Layout.of(folder).transformer
        config = transformer.optional("config.json")
        found |= {key: config[key] for key in ("model_type", "architectures", *KEPT) if key in config}
        found["modules"] = _modules(folder)
        tensors = open_tensors(transformer).values()
        found["parameters"] = sum(tensor.array.size for tensor in tensors)
        found["dtypes"] = sorted({tensor.dtype for tensor in tensors})
    except BertcliError:
        # `info` has reported the error already; what was read before it stays in the record.
        pass
    return found | {"files": _files(folder), "commands": []}


# ------------------------------------------------------------------------------------- models on this machine


def listed(cache_dir: str | None = None) -> list[dict[str, Any]]:
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


def _described(folder: Folder) -> dict[str, Any]:
    """A model's family, classes and bytes on disk, from its small files: the weights are not opened."""
    found: dict[str, Any] = {"bytes": sum(path.stat().st_size for path in folder.path.rglob("*") if path.is_file())}
    try:
        layout = Layout.of(folder)
        if layout.gliner is not None:
            what = f"entities of any type, on {layout.gliner.model_name}"
            return {**found, "runs": True, "family": "GLiNER", "what": what}
        config = layout.transformer.optional("config.json")
        title = "static model" if layout.is_static else parse_config(config).title
        classes = ", ".join(_modules(folder)) or ", ".join(map(str, config.get("architectures") or []))
        return {**found, "runs": True, "family": title.removeprefix("a "), "what": classes}
    except BertcliError as error:
        return {**found, "runs": False, "what": str(error)}


# ------------------------------------------------------------------------------------------------ for people


def table(found: Mapping[str, Any]) -> list[tuple[str, str]]:
    """The record of `info` as (name, text) lines of a table; lines without a value are left out."""
    lines = {
        "Kind": found.get("kind"),
        "Family": _joined(
            found.get("family"), f"type {quoted(found['model_type'])}" if found.get("model_type") else None
        ),
        "Classes": _joined(*map(str, found.get("architectures") or ())),
        "Heads": ", ".join(found["heads"]) or "none" if "heads" in found else None,
        "Network": _sizes(found),
        "Parameters": _joined(
            f"{found['parameters']:,}" if "parameters" in found else None,
            f"of which a token uses {found['active_parameters']:,}" if "active_parameters" in found else None,
        ),
        "Weights": _weights(found),
        "Tied": found.get("tied") and "the predictions' matrix is the embeddings'",
        "Vocabulary": f"{found['vocab_size']:,}" if "vocab_size" in found else None,
        "Limit": _limit(found),
        "Labels": ", ".join(found.get("labels", ())),
        "Entities": _spans(found.get("spans")),
        "Modules": ", ".join(found.get("modules", ())),
        "Vectors": _vectors(found),
        "Prompts": ", ".join(f"{name} {quoted(text)}" for name, text in found.get("prompts", {}).items() if text),
        "Prepended": quoted(found["prompt"]) if found.get("prompt") else None,
        "Lower case": "every text, before it is tokenized" if found.get("do_lower_case") else None,
        "Adapter": _adapter(found.get("adapter")),
        "Folder": found["folder"],
        "Note": " ".join(found.get("notes", ())),
        "Wrong" if found["runs"] else "Does not run": " ".join(found["problems"]),
    }
    return [(name, str(text)) for name, text in lines.items() if text]


def _limit(found: Mapping[str, Any]) -> str | None:
    if "limit" not in found:
        return None
    return f"{found['limit']:,} tokens a text; the network has {found['max_tokens']:,} positions"


def _spans(found: Mapping[str, Any] | None) -> str | None:
    if found is None:
        return None
    most, window = number_of(found["max_words"], "word"), number_of(found["window_words"], "word")
    return f"of types that you name (--labels), of up to {most}, read {window} at a time"


def _adapter(found: Mapping[str, Any] | None) -> str | None:
    if found is None:
        return None
    count = len(found["whole"])
    whole = f"; {number_of(count, 'tensor')} {'is' if count == 1 else 'are'} its own" if count else ""
    ranks = ", ".join(map(str, found["ranks"]))
    return f"LoRA of rank {ranks} changes {number_of(found['changes'], 'weight')}{whole} ({found['folder']})"


def _joined(*names: str | None) -> str:
    return ", ".join(dict.fromkeys(filter(None, names)))


def _sizes(found: Mapping[str, Any]) -> str:
    words: dict[str, Callable[[int], str]] = {
        "num_hidden_layers": lambda size: number_of(size, "layer"),
        "hidden_size": lambda size: f"width {size:,}",
        "num_attention_heads": lambda size: number_of(size, "attention head"),
        "intermediate_size": lambda size: f"feed-forward {size:,}",
    }
    sizes = {key: found.get(key) for key in words}
    return ", ".join(words[key](size) for key, size in sizes.items() if type(size) is int)


def _weights(found: Mapping[str, Any]) -> str:
    files = [f"{file['name']} ({_megabytes(file['bytes'])})" for file in found["files"]]
    shown_files = [*files[:3], f"{len(files) - 3} more"] if len(files) > 4 else files
    dtypes = found.get("dtypes", ())
    stored = [f"stored as {' and '.join(dtypes)}, computed in float32"] if dtypes else []
    return ", ".join([*shown_files, *stored])


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _vectors(found: Mapping[str, Any]) -> str | None:
    if "width" not in found:
        return None
    pooling = found.get("pooling")
    made = "one for each token" if pooling is None else f"pooled by {' + '.join(pooling)}, {found['pooling_from']}"
    return f"{found['width']:,} numbers, {made}" + (", scaled to length 1" if found["normalize"] else "")


def listing(models: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """The rows of a table of models: name, where, size, and what each is."""
    rows: list[tuple[str, ...]] = []
    for model in models:
        lost = f" (lacks {', '.join(model['lacks'][:3])})" if "lacks" in model else ""
        what = _joined(model.get("family"), model["what"])
        name = f"{model['model']}@{model['revision']}" if "revision" in model else model["model"]
        rows.append((name, model["where"], _megabytes(model["bytes"]), f"{what}{lost}"))
    return rows
