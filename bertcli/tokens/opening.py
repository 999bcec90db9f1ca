"""A tokenizer's files -> an object of the tokenizers library, ready for use."""

import json
import logging
import math
import os
import string
from base64 import b64decode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from tokenizers import AddedToken, Regex, normalizers
from tokenizers import Tokenizer as Backend

from bertcli.checkpoint.folder import Folder
from bertcli.checkpoint.untrusted import VOCABULARY_LIMIT, read_whole
from bertcli.errors import BertcliError, shown
from bertcli.tokens.bounds import check_tokenizer
from bertcli.tokens.settings import ROLES, Settings

PANIC = "PanicException"  # a Rust panic; pyo3 does not derive it from Exception, and it cannot be imported

# What BERT, RoBERTa, ESM and Gemma call their special tokens.
NAMES = (
    {"mask": "[MASK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "unk": "[UNK]"},
    {"mask": "<mask>", "cls": "<s>", "sep": "</s>", "pad": "<pad>", "unk": "<unk>"},
    {"mask": "<mask>", "cls": "<cls>", "sep": "<eos>", "pad": "<pad>", "unk": "<unk>"},
    {"mask": "<mask>", "cls": "<bos>", "sep": "<eos>", "pad": "<pad>", "unk": "<unk>"},
)

# A tokenizer.json that would end the process, or take all memory, is refused before it sees a text.
GROWTH_LIMIT = 10_000
# Classes that put special tokens around a text where tokenizer.json does not say so; others take it as it is.
FRAMED = (
    "", "bert", "distilbert", "electra", "mpnet", "roberta", "xlmroberta", "camembert", "albert", "debertav2", "esm",
)  # fmt: skip

logger = logging.getLogger("bertcli")


def open_backend(folder: Folder, settings: Settings) -> Backend:
    """The tokenizer in a checkpoint's folder: tokenizer.json, else its family's own files.

    A tokenizer.json that exists but cannot be read is an error; no other file is used instead. Special tokens in a text
    are recognized, and [CLS] and [SEP] are put around it unless file or class say otherwise. A tokenizer that is not
    `framed` is tokenizer.json as it is.
    """
    path, file = folder.path, folder.file("tokenizer.json")
    if not settings.framed:
        return _from_json(folder.reading(file.name))
    framed = settings.kind in FRAMED
    if os.path.lexists(file):
        backend = _from_json(folder.reading(file.name))
        _overrule(backend, settings, file)
    else:
        framed = True
        from bertcli.tokens.vocabularies import open_vocabulary  # most folders have a tokenizer.json

        with library_errors(f"The tokenizer in {path} cannot be made of its files"):
            backend = open_vocabulary(folder, settings)
        _check_steps(backend, path)
        from bertcli.tokens.completing import append_tokens

        append_tokens(backend, settings, special_tokens(backend, settings), path)
    _add_special_tokens(backend, settings)
    if settings.lowered:
        from bertcli.tokens.completing import lower_first

        lower_first(backend)
    if backend.post_processor is None and framed:
        from bertcli.tokens.completing import frame

        frame(backend, special_tokens(backend, settings), path)
    backend.encode_special_tokens = settings.split_special
    return backend


def special_tokens(backend: Backend, settings: Settings) -> dict[str, str]:
    """The tokens in the roles mask, cls, sep, pad, unk: as the settings name them, else as the vocabulary does."""
    bert, *later_families = NAMES

    def exists(token: str) -> bool:
        return backend.token_to_id(token) is not None

    whole = (names for names in later_families if all(exists(names[role]) for role in ("mask", "cls", "sep", "pad")))
    tokens = dict(next(whole, {}))
    if not tokens:  # BERT's come last, since MPNet has them, too
        tokens = {role: next((names[role] for names in NAMES if exists(names[role])), bert[role]) for role in ROLES}
    tokens["unk"] = getattr(backend.model, "unk_token", None) or tokens["unk"]
    return {**tokens, **settings.named}


@contextmanager
def library_errors(what: str) -> Iterator[None]:
    """Turn what the library raises into a BertcliError that begins with `what`.

    The library has no class of its own for errors. Subclasses of those it uses are not its errors: they come from
    Python code that ran meanwhile, such as a handler of signals.
    """
    try:
        yield
    except BaseException as error:
        if type(error) not in (Exception, ValueError) and type(error).__name__ != PANIC:
            raise
        raise BertcliError(f"{what} ({error!s:.300}): try another text, or fetch the model again.") from None


def _from_json(file: Path) -> Backend:
    data = read_whole(file, VOCABULARY_LIMIT)
    check_tokenizer(data, file)
    with library_errors(f"{file} cannot be read as a tokenizer"):
        backend = Backend.from_buffer(data)
    _check_steps(backend, file)
    if getattr(backend.model, "dropout", None):  # of merges, at random: for training, too
        backend.model.dropout = None
    return backend


def _overrule(backend: Backend, settings: Settings, file: Path) -> None:
    """Let tokenizer_config.json win over tokenizer.json where both versions of transformers do: by the class.

    What it leaves out has the class's default. PreTrainedTokenizerFast takes tokenizer.json as it is.
    """
    lower, prefix = settings.flag("do_lower_case", True), settings.flag("add_prefix_space", False)
    wanted: dict[str, dict[str, bool]] = {}
    if settings.kind in ("bert", "distilbert", "electra", "mpnet"):
        wanted["normalizer"] = {"lowercase": lower, "strip_accents": settings.flag("strip_accents", lower)}
        if settings.kind != "mpnet":
            wanted["normalizer"]["handle_chinese_chars"] = settings.flag("tokenize_chinese_chars", True)
    elif settings.kind == "roberta":
        trim = settings.flag("trim_offsets", True)
        wanted["pre_tokenizer"] = {"add_prefix_space": prefix}
        wanted["post_processor"] = {"add_prefix_space": prefix, "trim_offsets": trim}
    changes, lowercase = [], getattr(backend.normalizer, "lowercase", None)
    for name, values in wanted.items():
        part = getattr(backend, name)
        for key, value in values.items():
            current = getattr(part, key, value)
            if (lowercase if current is None else current) != value:  # strip_accents may be None: as lowercase was
                changes.append(f"{key} {str(value).lower()}")
            if hasattr(part, key):
                setattr(part, key, value)
        setattr(backend, name, part)
    if changes:
        logger.info("%s is read with %s, as transformers does (tokenizer_config.json).", file, ", ".join(changes))


def _add_special_tokens(backend: Backend, settings: Settings) -> None:
    """Make the library recognize special tokens in a text, as transformers does.

    A token that tokenizer_config.json describes with its id is recognized so, any other as the tokenizer has it. What
    it lacks is added, with the next id.
    """
    recognized, named = backend.get_added_tokens_decoder(), {token.content for token in settings.special}
    for id, token in sorted(settings.added.items()):
        if settings.described or id not in recognized:
            token.special = token.special or token.content in named
            _add(backend, token)
    contents = {token.content for token in backend.get_added_tokens_decoder().values()}
    words = [*special_tokens(backend, settings).values(), *settings.marked]
    known = [
        AddedToken(word, normalized=False, special=True) for word in words if backend.token_to_id(word) is not None
    ]
    for token in (*settings.special, *known):
        if token.content not in contents:
            contents.add(token.content)
            _add(backend, token)


def _add(backend: Backend, token: AddedToken) -> None:
    (backend.add_special_tokens if token.special else backend.add_tokens)([token])


def _check_steps(backend: Backend, file: Path) -> None:
    """Raise BertcliError for steps that make texts fill the memory, or at which the library panics."""
    for part in (backend.normalizer, backend.pre_tokenizer, backend.decoder):
        if part is None:
            continue
        steps = [*_steps(json.loads(part.__getstate__()))]
        if math.prod(map(_growth, steps)) > GROWTH_LIMIT:
            raise BertcliError(f"{file} makes texts more than {GROWTH_LIMIT:,} times as long: do not use this model.")
        for step in steps:
            match step:
                case {"type": "Replace", "pattern": pattern} if _matches_nothing(pattern):
                    raise BertcliError(f"{file} replaces what lies between two letters (Replace): use another model.")
                case {"type": "FixedLength", "length": 0}:
                    raise BertcliError(f"{file} cuts texts into parts of no length (FixedLength): use another model.")
                case {"type": "Strip", "stop": stop} if stop > 0:  # of a piece that may be shorter
                    raise BertcliError(f"{file} decodes by cutting ends off pieces (Strip): use another model.")
    left = backend.normalizer.normalize_str if backend.normalizer else str
    for token in backend.get_added_tokens_decoder().values():
        if token.normalized and not left(token.content):  # it would be found between any two bytes
            raise BertcliError(
                f"{file} adds the token {shown(token.content)}, of which its normalizer leaves nothing: "
                "use another model."
            )


def _steps(state: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """A part of a tokenizer, or what it is a sequence of."""
    inner = next((state[name] for name in ("normalizers", "pretokenizers", "decoders") if name in state), None)
    yield from (state,) if inner is None else chain.from_iterable(map(_steps, inner))


def _matches_nothing(pattern: Mapping[str, str]) -> bool:
    """Whether a pattern is found between letters, too; the library loses count of what is put there."""
    ((kind, text),) = pattern.items()
    replacing = normalizers.Replace(Regex(text) if kind == "Regex" else text, "_")
    return len(replacing.normalize_str(string.printable)) > len(string.printable)


def _growth(step: Mapping[str, Any]) -> float:
    """How many letters a step of a tokenizer may turn one into: a → aa, 40 times, makes 10¹²."""
    if step["type"] == "Prepend":
        return 1 + len(step["prepend"])
    if step["type"] == "Replace":
        literal = step["pattern"].get("String")
        return max(1, len(step["content"]) / len(literal)) if literal else 1 + len(step["content"])  # at every letter
    if step["type"] == "Precompiled":  # a trie, whose size comes first, and what characters are replaced with
        data = b64decode(step["precompiled_charsmap"])
        return max(map(len, data[4 + int.from_bytes(data[:4], "little") :].split(b"\0")), default=1) or 1
    return 1
