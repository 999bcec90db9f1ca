"""Load a tokenizer's files into an object of the tokenizers library, set up as transformers does.

settings.py reads the configuration files; slow.py builds a tokenizer where tokenizer.json is missing. Not here: the
templates around a text and truncation, which bertcli applies itself (tokenizer.py, template.py).
"""

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path

from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend
from tokenizers.models import Unigram

from bertcli.folder.files import VOCABULARY_LIMIT, Folder, read_whole
from bertcli.tokens.aborting import check_tokenizer
from bertcli.tokens.library import AT_OPENING, library_errors
from bertcli.tokens.settings import NAMED, Settings

# Special tokens of BERT, RoBERTa, ESM and Gemma, by role.
NAMES = (
    {"mask": "[MASK]", "cls": "[CLS]", "sep": "[SEP]", "pad": "[PAD]", "unk": "[UNK]"},
    {"mask": "<mask>", "cls": "<s>", "sep": "</s>", "pad": "<pad>", "unk": "<unk>"},
    {"mask": "<mask>", "cls": "<cls>", "sep": "<eos>", "pad": "<pad>", "unk": "<unk>"},
    {"mask": "<mask>", "cls": "<bos>", "sep": "<eos>", "pad": "<pad>", "unk": "<unk>"},
)

# Classes that put special tokens around a text even if tokenizer.json has no post-processor. The others do not.
ADDING_SPECIAL = (
    "", "bert", "distilbert", "electra", "mpnet", "roberta", "xlmroberta", "camembert", "albert", "debertav2", "esm",
)  # fmt: skip

logger = logging.getLogger("bertcli")


def open_backend(folder: Folder, settings: Settings) -> Backend:
    """Open the tokenizer in a checkpoint's folder: tokenizer.json, else the files of its family.

    A tokenizer.json that cannot be read is an error, even if other files exist. The tokenizer recognizes special tokens
    in a text and puts [CLS] and [SEP] around it, unless the file or the class does otherwise. Without `adds_special`
    (static models), tokenizer.json is used unchanged.
    """
    file = folder.file("tokenizer.json")
    if not settings.adds_special:
        return _from_json(folder.reading(file.name))
    has_json = os.path.lexists(file)
    if has_json:
        backend = _from_json(folder.reading(file.name))
        changes = _overrule(backend, settings)
        if changes:
            logger.info("%s is read with %s, as transformers does (tokenizer_config.json).", file, ", ".join(changes))
    else:
        backend = _from_vocabulary(folder, settings)
    _add_special_tokens(backend, settings)
    if settings.lowercase_first:
        from bertcli.tokens.missing_tokens import add_lowercase

        add_lowercase(backend)
    class_adds = settings.class_name in ADDING_SPECIAL or not has_json
    if backend.post_processor is None and class_adds:
        from bertcli.tokens.missing_tokens import add_template

        add_template(backend, special_tokens(backend, settings), folder.path)
    backend.encode_special_tokens = settings.split_special
    return backend


def _from_vocabulary(folder: Folder, settings: Settings) -> Backend:
    """Make the tokenizer of a folder without tokenizer.json from the vocabulary's files."""
    from bertcli.tokens.missing_tokens import append_tokens  # late: most folders have a tokenizer.json
    from bertcli.tokens.slow import open_vocabulary

    with library_errors(f"The tokenizer in {folder.path} cannot be made of its files", AT_OPENING):
        backend = open_vocabulary(folder, settings)
    append_tokens(backend, settings, special_tokens(backend, settings), folder.path)
    return backend


def special_tokens(backend: Backend, settings: Settings) -> dict[str, str]:
    """Map the roles mask, cls, sep, pad, unk to tokens: the settings', else the usual ones in the vocabulary."""

    def exists(token: str) -> bool:
        return backend.token_to_id(token) is not None

    tokens: dict[str, str] = {}
    bert, *later_families = NAMES
    # BERT's are tried last, since MPNet's vocabulary contains them as well.
    for names in later_families:
        if all(exists(names[role]) for role in ("mask", "cls", "sep", "pad")):
            tokens = dict(names)
            break
    else:
        for role in NAMED:
            known = (names[role] for names in NAMES if exists(names[role]))
            tokens[role] = next(known, bert[role])
    tokens["unk"] = getattr(backend.model, "unk_token", None) or tokens["unk"]
    return {**tokens, **settings.named}


def unknown_id(backend: Backend) -> int | None:
    """The id of what the vocabulary lacks; None for a tokenizer that has none."""
    # The library does not show that of a Unigram model otherwise.
    if isinstance(backend.model, Unigram):
        id: int | None = json.loads(backend.to_str())["model"].get("unk_id")
        return id
    token = getattr(backend.model, "unk_token", None)
    return None if token is None else backend.token_to_id(token)


def _from_json(file: Path) -> Backend:
    """Open a tokenizer.json."""
    data = read_whole(file, VOCABULARY_LIMIT)
    check_tokenizer(data, file)
    with library_errors(f"{file} cannot be read as a tokenizer", AT_OPENING):
        backend = Backend.from_buffer(data)
    if getattr(backend.model, "dropout", None):  # BPE dropout skips merges at random, which only helps in training
        backend.model.dropout = None
    return backend


def _overrule(backend: Backend, settings: Settings) -> list[str]:
    """Apply the keys of tokenizer_config.json that override tokenizer.json in transformers 4 and 5.

    Return what it changes, as in "lowercase false".
    """
    changes: list[str] = []
    for name, values in _overruling(settings).items():
        changes += _set(backend, name, values)
    return [*dict.fromkeys(changes)]


def _overruling(settings: Settings) -> dict[str, dict[str, bool]]:
    """List the values that a class sets, by the component of the tokenizer that has them.

    A key that is absent overrides with the class's default. PreTrainedTokenizerFast uses tokenizer.json unchanged.
    """
    if settings.class_name in ("bert", "distilbert", "electra", "mpnet"):
        lowercase = settings.flag("do_lower_case", True)
        normalizer = {"lowercase": lowercase, "strip_accents": settings.flag("strip_accents", lowercase)}
        if settings.class_name != "mpnet":
            normalizer["handle_chinese_chars"] = settings.flag("tokenize_chinese_chars", True)
        return {"normalizer": normalizer}
    if settings.class_name == "roberta":
        prefix = {"add_prefix_space": settings.flag("add_prefix_space", False)}
        trim = {"trim_offsets": settings.flag("trim_offsets", True)}
        return {"pre_tokenizer": prefix, "post_processor": prefix | trim}
    return {}


def _set(backend: Backend, name: str, values: Mapping[str, bool]) -> list[str]:
    """Set the values of a component of a tokenizer; return those that were different before, as "lowercase false"."""
    component = getattr(backend, name)
    # Looked up before it is set: strip_accents may be None, which means the file's value of lowercase.
    lowercase = getattr(component, "lowercase", None)
    changes = []
    for key, value in values.items():
        # A component of another class than transformers writes may lack the key.
        if not hasattr(component, key):
            continue
        current = getattr(component, key)
        if current is None:
            current = lowercase
        if current != value:
            changes.append(f"{key} {str(value).lower()}")
        setattr(component, key, value)
    setattr(backend, name, component)
    return changes


def _add_special_tokens(backend: Backend, settings: Settings) -> None:
    """Make the library recognize special tokens in a text, as transformers does.

    Tokens that tokenizer_config.json describes (added_tokens_decoder) override the tokenizer's; tokens that it lacks
    are added with the next ids.
    """
    recognized = backend.get_added_tokens_decoder()
    special = {token.content for token in settings.special}
    for id, token in sorted(settings.added.items()):
        if settings.described or id not in recognized:
            token.special = token.special or token.content in special
            _add(backend, token)
    recognized_contents = {token.content for token in backend.get_added_tokens_decoder().values()}
    words = [*special_tokens(backend, settings).values(), *settings.markers]
    in_vocabulary = [word for word in words if backend.token_to_id(word) is not None]
    tokens = [*settings.special, *(AddedToken(word, normalized=False, special=True) for word in in_vocabulary)]
    for token in tokens:
        if token.content not in recognized_contents:
            recognized_contents.add(token.content)
            _add(backend, token)


def _add(backend: Backend, token: AddedToken) -> None:
    """Add a token to the vocabulary, unless it is there, and recognize it in a text."""
    (backend.add_special_tokens if token.special else backend.add_tokens)([token])
