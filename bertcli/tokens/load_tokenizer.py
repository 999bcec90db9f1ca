"""Load a tokenizer's files into an object of the tokenizers library, set up as transformers does.

settings.py reads the configuration files; slow.py builds a tokenizer where tokenizer.json is missing.
"""

import logging
import os
from pathlib import Path

from tokenizers import AddedToken
from tokenizers import Tokenizer as Backend

from bertcli.folder.files import VOCABULARY_LIMIT, Folder, read_whole
from bertcli.tokens.bounds import check_tokenizer
from bertcli.tokens.library import AT_OPENING, library_errors
from bertcli.tokens.settings import ROLES, Settings

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
    path, file = folder.path, folder.file("tokenizer.json")
    if not settings.adds_special:
        return _from_json(folder.reading(file.name))
    adds_special = settings.class_name in ADDING_SPECIAL
    if os.path.lexists(file):
        backend = _from_json(folder.reading(file.name))
        _overrule(backend, settings, file)
    else:
        adds_special = True
        from bertcli.tokens.slow import open_vocabulary  # most folders have a tokenizer.json

        with library_errors(f"The tokenizer in {path} cannot be made of its files", AT_OPENING):
            backend = open_vocabulary(folder, settings)
        from bertcli.tokens.missing_tokens import append_tokens

        append_tokens(backend, settings, special_tokens(backend, settings), path)
    _add_special_tokens(backend, settings)
    if settings.lowercase_first:
        from bertcli.tokens.missing_tokens import add_lowercase

        add_lowercase(backend)
    if backend.post_processor is None and adds_special:
        from bertcli.tokens.missing_tokens import add_template

        add_template(backend, special_tokens(backend, settings), path)
    backend.encode_special_tokens = settings.split_special
    return backend


def special_tokens(backend: Backend, settings: Settings) -> dict[str, str]:
    """Map the roles mask, cls, sep, pad, unk to tokens: the settings', else the usual ones in the vocabulary."""
    bert, *later_families = NAMES

    def exists(token: str) -> bool:
        return backend.token_to_id(token) is not None

    whole = (names for names in later_families if all(exists(names[role]) for role in ("mask", "cls", "sep", "pad")))
    tokens = dict(next(whole, {}))
    if not tokens:  # BERT's are tried last, since MPNet's vocabulary contains them as well
        tokens = {role: next((names[role] for names in NAMES if exists(names[role])), bert[role]) for role in ROLES}
    tokens["unk"] = getattr(backend.model, "unk_token", None) or tokens["unk"]
    return {**tokens, **settings.named}


def _from_json(file: Path) -> Backend:
    data = read_whole(file, VOCABULARY_LIMIT)
    check_tokenizer(data, file)
    with library_errors(f"{file} cannot be read as a tokenizer", AT_OPENING):
        backend = Backend.from_buffer(data)
    if getattr(backend.model, "dropout", None):  # BPE dropout skips merges at random, which only helps in training
        backend.model.dropout = None
    return backend


def _overrule(backend: Backend, settings: Settings, file: Path) -> None:
    """Apply the keys of tokenizer_config.json that override tokenizer.json in transformers 4 and 5, for some classes.

    A key that is absent overrides with the class's default. PreTrainedTokenizerFast uses tokenizer.json unchanged.
    """
    lower, prefix = settings.flag("do_lower_case", True), settings.flag("add_prefix_space", False)
    expected: dict[str, dict[str, bool]] = {}
    if settings.class_name in ("bert", "distilbert", "electra", "mpnet"):
        expected["normalizer"] = {"lowercase": lower, "strip_accents": settings.flag("strip_accents", lower)}
        if settings.class_name != "mpnet":
            expected["normalizer"]["handle_chinese_chars"] = settings.flag("tokenize_chinese_chars", True)
    elif settings.class_name == "roberta":
        trim = settings.flag("trim_offsets", True)
        expected["pre_tokenizer"] = {"add_prefix_space": prefix}
        expected["post_processor"] = {"add_prefix_space": prefix, "trim_offsets": trim}
    changes, lowercase = [], getattr(backend.normalizer, "lowercase", None)
    for name, values in expected.items():
        part = getattr(backend, name)
        for key, value in values.items():
            current = getattr(part, key, value)
            # strip_accents may be None, which means the value of lowercase; it may have been overridden already.
            if (lowercase if current is None else current) != value:
                changes.append(f"{key} {str(value).lower()}")
            if hasattr(part, key):
                setattr(part, key, value)
        setattr(backend, name, part)
    if changes:
        logger.info("%s is read with %s, as transformers does (tokenizer_config.json).", file, ", ".join(changes))


def _add_special_tokens(backend: Backend, settings: Settings) -> None:
    """Make the library recognize special tokens in a text, as transformers does.

    Tokens that tokenizer_config.json describes (added_tokens_decoder) override the tokenizer's; tokens that it lacks
    are added with the next ids.
    """
    recognized, named = backend.get_added_tokens_decoder(), {token.content for token in settings.special}
    for id, token in sorted(settings.added.items()):
        if settings.described or id not in recognized:
            token.special = token.special or token.content in named
            _add(backend, token)
    contents = {token.content for token in backend.get_added_tokens_decoder().values()}
    words = [*special_tokens(backend, settings).values(), *settings.markers]
    known = [
        AddedToken(word, normalized=False, special=True) for word in words if backend.token_to_id(word) is not None
    ]
    for token in (*settings.special, *known):
        if token.content not in contents:
            contents.add(token.content)
            _add(backend, token)


def _add(backend: Backend, token: AddedToken) -> None:
    (backend.add_special_tokens if token.special else backend.add_tokens)([token])
