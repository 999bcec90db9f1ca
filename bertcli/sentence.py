"""What a sentence-transformers folder specifies besides the network: pooling, Dense layers, normalisation, limits.

`modules.json` lists the modules in order; each has a folder with a config.json. A listed module is applied or refused,
never skipped. Source of the files' meaning: the modules of sentence-transformers 2 to 6.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

from bertcli.dense import Dense, read_dense, read_flag, unusable
from bertcli.errors import BertcliError
from bertcli.untrusted import read_json, read_object, shown

# In the order in which the modes flagged in older folders are concatenated; those not in MODES are refused.
FLAGS = {
    "pooling_mode_cls_token": "cls", "pooling_mode_max_tokens": "max", "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len", "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}  # fmt: skip
MODES = ("cls", "max", "mean", "mean_sqrt_len")
ORDER = ("Transformer", "Pooling", "Dense", "Normalize")


class SentenceConfig(NamedTuple):
    """How token vectors become a sentence vector: pooled (several modes: concatenated), `dense` in turn, normalised.

    `pooling` is empty if the folder does not specify it; `reason` tells the user the choice and where it comes from.
    Only `truncate_dim` numbers of the result are kept; None keeps all.
    `prompt` is prepended to every text; `do_lower_case` lower-cases the text before the tokenizer sees it.
    """

    pooling: tuple[str, ...] = ()
    normalize: bool = False
    max_seq_length: int | None = None
    dense: tuple[Dense, ...] = ()
    reason: str = "mean, since the checkpoint specifies no pooling"
    do_lower_case: bool = False
    prompt: str = ""
    truncate_dim: int | None = None


class _Module(NamedTuple):
    kind: str
    path: str


def read_limit(folder: Path) -> int | None:
    """max_seq_length of sentence_bert_config.json; None if it does not say. No other file needs to be valid."""
    return _read_transformer(folder)[0]


def read_preparation(folder: Path) -> tuple[str, bool]:
    """How a text is prepared for the tokenizer: the prompt prepended to it, and whether it is lower-cased."""
    return _read_prompt(folder), _read_transformer(folder)[1]


def read_sentence_config(folder: Path) -> SentenceConfig:
    """What the folder's sentence-transformers files say; the defaults if there are none.

    Errors: BertcliError naming the file, if it is damaged, has a module or mode that bertcli does not support, or sizes
    that do not match.
    """
    limit, lower = _read_transformer(folder)
    modules = _read_modules(folder)
    found = SentenceConfig(
        max_seq_length=limit,
        do_lower_case=lower,
        prompt=_read_prompt(folder),
        truncate_dim=_read_truncate_dim(folder),
    )
    size = None
    for module in modules:
        file = folder / module.path / "config.json"
        if module.kind == "Pooling":
            modes, size = _read_pooling(file, found.prompt)
            found = found._replace(pooling=modes, reason=f"{' + '.join(modes)}, from {module.path}/config.json")
        elif module.kind == "Dense":
            dense = read_dense(file, size)
            size = len(dense.weight)
            found = found._replace(dense=(*found.dense, dense))
        elif module.kind == "Normalize":
            found = found._replace(normalize=True)
    return found


def missing_files(folder: Path) -> list[str]:
    """Files of the modules listed in modules.json that the folder lacks, as paths within it."""
    names = []
    for module in _read_modules(folder):
        if module.kind in ("Pooling", "Dense"):
            names.append(f"{module.path}/config.json")
        if module.kind == "Dense":
            names.append(f"{module.path}/model.safetensors")
    return [name for name in names if not (folder / name).is_file()]


def _read_modules(folder: Path) -> list[_Module]:
    """The modules in the order of ORDER; empty without modules.json."""
    file = folder / "modules.json"
    if not file.is_file():
        return []
    modules = read_json(file)
    if not isinstance(modules, list):
        raise BertcliError(f"{file} holds not a list of modules but {shown(modules)}: fetch the model again.")
    found = [_module(entry, file) for entry in modules]
    kinds = [module.kind for module in found]
    in_order = kinds == sorted(kinds, key=ORDER.index) and kinds.count("Transformer") == 1
    if not in_order or kinds.count("Pooling") > 1 or ("Dense" in kinds and "Pooling" not in kinds):
        wanted = "one Transformer, one Pooling, then Dense and Normalize"
        raise unusable(file, f"lists the modules {', '.join(kinds)}; bertcli supports {wanted}, in this order")
    if found[0].path:
        raise BertcliError(
            f"{file} keeps the network in the folder {shown(found[0].path)}; bertcli needs it next to modules.json: "
            'move its files there and set this module\'s path to "".'
        )
    return found


def _module(entry: Any, file: Path) -> _Module:
    kind, path = (entry.get("type"), entry.get("path")) if isinstance(entry, dict) else (None, None)
    if not isinstance(kind, str) or not isinstance(path, str):
        raise BertcliError(f"{file} has an entry without type or path, {shown(entry)}: fetch the model again.")
    package, _, name = kind.rpartition(".")
    if not package.startswith("sentence_transformers.") or name not in ORDER:
        raise unusable(file, f"lists the module {shown(kind)}, which bertcli does not support")
    if path and (path in (".", "..") or not path.isprintable() or any(mark in path for mark in "/\\:")):
        raise BertcliError(
            f"{file} has a module in {shown(path)}, which is not a folder next to it: do not use this model."
        )
    if not path and name in ("Pooling", "Dense"):
        raise BertcliError(f"{file} has a {name} without a folder: fetch the model again.")
    return _Module(name, path)


def _read_transformer(folder: Path) -> tuple[int | None, bool]:
    """max_seq_length and do_lower_case of sentence_bert_config.json."""
    file = folder / "sentence_bert_config.json"
    config = read_object(file) if file.is_file() else {}
    limit = config.get("max_seq_length")
    if limit is not None and (type(limit) is not int or limit < 1):
        raise BertcliError(
            f"{file} has the max_seq_length {shown(limit)}: set it to a whole number above 0 or to null."
        )
    return limit, read_flag(config, "do_lower_case", False, file)


def _read_prompt(folder: Path) -> str:
    """The prompt that default_prompt_name of config_sentence_transformers.json prepends to every text."""
    file = folder / "config_sentence_transformers.json"
    config = read_object(file) if file.is_file() else {}
    name, prompts = config.get("default_prompt_name"), config.get("prompts")
    if name is None:
        return ""
    prompt = prompts.get(name) if isinstance(prompts, dict) and isinstance(name, str) else None
    if not isinstance(prompt, str):
        raise BertcliError(f"{file} has the default_prompt_name {shown(name)} but no such prompt: set it to null.")
    return prompt


def _read_truncate_dim(folder: Path) -> int | None:
    """truncate_dim of config_sentence_transformers.json."""
    file = folder / "config_sentence_transformers.json"
    size = (read_object(file) if file.is_file() else {}).get("truncate_dim")
    if size is not None and (type(size) is not int or size < 1):
        raise BertcliError(f"{file} has the truncate_dim {shown(size)}: set it to a whole number above 0 or to null.")
    return size


def _read_pooling(file: Path, prompt: str) -> tuple[tuple[str, ...], int | None]:
    """The modes in the order of their concatenation, and the length of the result if the file states it."""
    config = read_object(file)
    modes = config.get("pooling_mode")
    if modes is None:
        modes = [mode for flag, mode in FLAGS.items() if read_flag(config, flag, False, file)] or ["mean"]
    modes = [modes] if isinstance(modes, str) else modes
    if not isinstance(modes, list) or not modes:
        raise BertcliError(f"{file} has the pooling_mode {shown(modes)}: fetch the model again.")
    modes = ["mean_sqrt_len" if mode == "mean_sqrt_len_tokens" else mode for mode in modes]
    for mode in modes:
        if mode not in MODES:
            raise unusable(file, f"asks for the pooling {shown(mode)}; bertcli supports {', '.join(MODES)}")
    if prompt and not read_flag(config, "include_prompt", True, file):
        raise unusable(file, "excludes the prompt from the pooling, which bertcli does not support")
    size = config.get("embedding_dimension", config.get("word_embedding_dimension"))
    if size is not None and (type(size) is not int or size < 1):
        raise BertcliError(f"{file} pools vectors of length {shown(size)}: fetch the model again.")
    return tuple(modes), size and size * len(modes)
