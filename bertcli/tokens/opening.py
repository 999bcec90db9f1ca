"""A tokenizer's files -> an object of the tokenizers library, ready for use, and what the small files say besides."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tokenizers import AddedToken, decoders, normalizers, pre_tokenizers, processors
from tokenizers import Tokenizer as Backend
from tokenizers.models import WordPiece

from bertcli.checkpoint.lacking import lacks_tokenizer
from bertcli.checkpoint.untrusted import VOCABULARY_LIMIT, flag, read_optional, read_whole
from bertcli.errors import BertcliError, shown
from bertcli.tokens.refused import refuse_growth, refuse_merges

PANIC = "PanicException"  # a Rust panic; pyo3 does not derive it from Exception, and it cannot be imported
UNLIMITED = 10**9  # a model_max_length this large (1e30 is usual) means that none was set

# What BERT and RoBERTa call their special tokens, by role.
NAMES = {
    "mask": ("[MASK]", "<mask>"), "cls": ("[CLS]", "<s>"), "sep": ("[SEP]", "</s>"), "pad": ("[PAD]", "<pad>"),
    "unk": ("[UNK]", "<unk>"),
}  # fmt: skip

# Tokenizers that vocab.txt describes; that of any other class needs a tokenizer.json.
WORD_PIECE_CLASSES = ("Bert", "DistilBert", "Electra", "MPNet")


class Settings(NamedTuple):
    """tokenizer_config.json and special_tokens_map.json, with BERT's defaults for what they omit.

    `named` holds the special tokens by role, of those in NAMES that the files name; `added` has tokens by their ids,
    `extra` special tokens without a role. `has_segments` is false where the model is given no segments, and `framed`
    where no special tokens are put around a text.
    """

    named: Mapping[str, AddedToken] = {}
    added: Mapping[int, AddedToken] = {}
    extra: tuple[AddedToken, ...] = ()
    do_lower_case: bool = True
    strip_accents: bool = True
    tokenize_chinese_chars: bool = True
    max_length: int | None = None
    cut_left: bool = False
    has_segments: bool = True
    tokenizer_class: str | None = None
    framed: bool = True


# -------------------------------------------------------------------------------------------------- the small files


def read_settings(folder: Path) -> Settings:
    """The tokenizer's settings in a checkpoint's folder; files may be missing, but their contents must be valid."""
    file = folder / "tokenizer_config.json"
    config = read_optional(file)
    named = {**read_optional(folder / "special_tokens_map.json"), **config}
    kind = config.get("tokenizer_class") or read_optional(folder / "config.json").get("tokenizer_class")
    inputs = config.get("model_input_names")
    lower = flag(config, "do_lower_case", True, file)
    return Settings(
        named={role: _token(named[key], file, key) for role in NAMES if named.get(key := f"{role}_token") is not None},
        added=_added(config, file),
        extra=_extra(named, file),
        do_lower_case=lower,
        strip_accents=flag(config, "strip_accents", lower, file),
        tokenize_chinese_chars=flag(config, "tokenize_chinese_chars", True, file),
        max_length=_max_length(config.get("model_max_length"), file),
        cut_left=config.get("truncation_side") == "left",
        has_segments=not isinstance(inputs, list) or "token_type_ids" in inputs,
        tokenizer_class=kind if isinstance(kind, str) else None,
    )


def _max_length(value: Any, file: Path) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 1:
        raise BertcliError(f"{file}: model_max_length is {shown(value)}, which is not a length.")
    return None if value >= UNLIMITED else int(value)


def _token(value: Any, file: Path, key: str, *, special: bool = True) -> AddedToken:
    """A token that is recognized as a whole in a text, given as a string, or as an object with it under `content`.

    Without `special` it is a special one only if the object says so.
    """
    given = value if isinstance(value, dict) else {"content": value}
    switches = {name: given.get(name) is True for name in ("lstrip", "rstrip", "single_word", "normalized")}
    try:
        token = AddedToken(given["content"], special=special or given.get("special") is True, **switches)
    except (LookupError, TypeError, UnicodeEncodeError):  # not a text, or one with half a pair of surrogates
        token = AddedToken("")
    if not token.content:
        raise BertcliError(f"{file}: {key} is {shown(value)}, which is not a token.")
    return token


def _extra(named: dict[str, Any], file: Path) -> tuple[AddedToken, ...]:
    """Special tokens without a role, under the name that transformers 4 or 5 gives the list."""
    lists = [named.get(key) or [] for key in ("additional_special_tokens", "extra_special_tokens")]
    values = [list(one.values()) if isinstance(one, dict) else one for one in lists]
    if not all(isinstance(one, list) for one in values):
        raise BertcliError(f"{file}: additional_special_tokens or extra_special_tokens is not a list.")
    return tuple(_token(value, file, "an added token") for one in values for value in one)


def _added(config: dict[str, Any], file: Path) -> dict[int, AddedToken]:
    """added_tokens_decoder of tokenizer_config.json: tokens by id."""
    decoder = config.get("added_tokens_decoder") or {}
    if not isinstance(decoder, dict):
        raise BertcliError(f"{file}: added_tokens_decoder is {shown(decoder)}, which is no object.")
    return {_id(key, file): _token(value, file, "an added token", special=False) for key, value in decoder.items()}


def _id(value: Any, file: Path) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():  # a key of JSON
        return int(value)
    if type(value) is not int or value < 0:
        raise BertcliError(f"{file} gives an added token the id {shown(value)}, which is not a whole number.")
    return value


# ---------------------------------------------------------------------------------------------------- the tokenizer


def open_backend(folder: Path, settings: Settings) -> Backend:
    """The tokenizer in a checkpoint's folder: tokenizer.json, else BERT's own tokenizer with vocab.txt.

    A tokenizer.json that exists but cannot be read is an error; vocab.txt is not used instead. Special tokens in a text
    are recognized, and [CLS] and [SEP] are put around it unless the file says otherwise. One that is not `framed` is
    tokenizer.json as it is.
    """
    file = folder / "tokenizer.json"
    is_there = file.exists() or file.is_symlink()
    backend = _from_json(file) if is_there or not settings.framed else _from_vocabulary(folder, settings)
    if settings.framed:
        _add_special_tokens(backend, settings)
        if backend.post_processor is None:
            _frame(backend, special_tokens(backend, settings), folder)
    return backend


def special_tokens(backend: Backend, settings: Settings) -> dict[str, AddedToken]:
    """The tokens in the roles mask, cls, sep, pad, unk: as the settings name them, else as BERT or RoBERTa does."""
    known = {token for names in NAMES.values() for token in names if backend.token_to_id(token) is not None}
    of_roberta = all(NAMES[role][1] in known for role in ("mask", "cls", "sep", "pad"))  # MPNet has BERT's pieces, too
    found = {
        role: two if of_roberta or (one not in known and two in known) else one for role, (one, two) in NAMES.items()
    }
    found["unk"] = getattr(backend.model, "unk_token", None) or found["unk"]
    tokens = {role: AddedToken(token, normalized=False, special=True) for role, token in found.items()}
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
    refuse_merges(data, file)
    with library_errors(f"{file} cannot be read as a tokenizer"):
        backend = Backend.from_buffer(data)
    refuse_growth(backend, file)
    if getattr(backend.model, "dropout", None):  # of merges, at random: for training, too
        backend.model.dropout = None
    backend.no_truncation()  # the stored settings are those of its training run; the limit is set at every encode
    backend.no_padding()
    return backend


def _from_vocabulary(folder: Path, settings: Settings) -> Backend:
    """BERT's own tokenizer with the word pieces of vocab.txt, and the tokens added to it."""
    kind = settings.tokenizer_class
    if not (folder / "vocab.txt").exists():
        names = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
        raise lacks_tokenizer(str(folder), str(folder), names)
    if kind is not None and kind.removesuffix("Fast").removesuffix("Tokenizer") not in WORD_PIECE_CLASSES:
        raise lacks_tokenizer(f"{folder}, which asks for a {shown(kind)},", str(folder), {"vocab.txt"})
    unknown = settings.named.get("unk", AddedToken("[UNK]"))
    backend = Backend(WordPiece(_read_vocabulary(folder / "vocab.txt"), unk_token=unknown.content))
    backend.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=settings.tokenize_chinese_chars,
        strip_accents=settings.strip_accents,
        lowercase=settings.do_lower_case,
    )
    backend.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    backend.decoder = decoders.WordPiece()
    _append_tokens(backend, settings, folder)
    return backend


def _read_vocabulary(file: Path) -> dict[str, int]:
    """Word pieces of a vocab.txt, one per line -> their ids, the line numbers from 0."""
    try:
        lines = read_whole(file, VOCABULARY_LIMIT).decode("utf-8").replace("\r\n", "\n").split("\n")
    except UnicodeDecodeError:
        raise BertcliError(f"{file} is not UTF-8: fetch the model again.") from None
    if lines[-1] == "":
        lines.pop()
    return {piece: id for id, piece in enumerate(lines)}


def _append_tokens(backend: Backend, settings: Settings, folder: Path) -> None:
    """Add the tokens that follow the pieces of vocab.txt: added_tokens.json, or those of tokenizer_config.json."""
    special = {token.content for token in (*settings.named.values(), *settings.extra)}
    file = folder / "added_tokens.json"
    added = {
        _id(id, file): _token(
            {"content": token, "normalized": token not in special}, file, "an added token", special=False
        )
        for token, id in read_optional(file).items()
    }
    for id, token in sorted((added | dict(settings.added)).items()):
        next_id = backend.get_vocab_size()
        if backend.token_to_id(token.content) != (None if id == next_id else id):
            raise BertcliError(
                f"{folder} gives the added token {shown(token.content)} the id {id}, which is neither its own in "
                f"vocab.txt nor the next one, {next_id}: fetch the model again."
            )
        token.special = token.special or token.content in special
        _add(backend, token)


def _add_special_tokens(backend: Backend, settings: Settings) -> None:
    """Make the library recognize special tokens in a text; those with an id as tokenizer_config.json describes them."""
    known = backend.get_added_tokens_decoder()
    for id, token in sorted(settings.added.items()):
        if token != known.get(id) and backend.token_to_id(token.content) == id:
            _add(backend, token)
    contents = {token.content for token in backend.get_added_tokens_decoder().values()}
    for token in (*special_tokens(backend, settings).values(), *settings.extra):
        if token.content not in contents and backend.token_to_id(token.content) is not None:
            _add(backend, token)


def _add(backend: Backend, token: AddedToken) -> None:
    (backend.add_special_tokens if token.special else backend.add_tokens)([token])


def _frame(backend: Backend, special: Mapping[str, AddedToken], folder: Path) -> None:
    """[CLS] A [SEP] and [CLS] A [SEP] B [SEP], as BERT has it; <s> A </s> and <s> A </s></s> B </s>, as RoBERTa has."""
    first, last = special["cls"].content, special["sep"].content
    ids = [(token, backend.token_to_id(token)) for token in (first, last)]
    missing = ", ".join(token for token, id in ids if id is None)
    if missing:
        raise BertcliError(f"The vocabulary in {folder} lacks {missing}, which BERT puts around every text.")
    second = [f"{last}:0", "$B:0", f"{last}:0"] if first == "<s>" else ["$B:1", f"{last}:1"]
    backend.post_processor = processors.TemplateProcessing(
        single=[f"{first}:0", "$A:0", f"{last}:0"],
        pair=[f"{first}:0", "$A:0", f"{last}:0", *second],
        special_tokens=ids,
    )
