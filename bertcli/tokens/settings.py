"""Read a tokenizer's settings: tokenizer_config.json, special_tokens_map.json and added_tokens.json.

The length at which texts are cut is decided in tasks/running/task.py (`length_limit`), of which model_max_length is one
part.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tokenizers import AddedToken

from bertcli.errors import BertcliError, quoted
from bertcli.folder.files import Folder, JsonSettings

if TYPE_CHECKING:
    from bertcli.tokens.chat import ChatTemplate

UNLIMITED = 10**9  # a model_max_length this large (1e30 is usual) means that none was set
MOST_EXTRA_IDS = 1000  # the largest number in use is 300
NAMED = ("mask", "cls", "sep", "pad", "unk")  # the special tokens that code asks for by what they are
SPECIAL = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")  # in transformers' order, which decides new ids
FLAGS = (
    "do_lower_case", "strip_accents", "tokenize_chinese_chars", "keep_accents", "split_by_punct", "add_prefix_space",
    "trim_offsets",
)  # fmt: skip

OF_MODELS = {"nomic_bert": "bert", "ernie": "bert", "gte": "xlm-roberta"}  # model_type -> whose tokenizer it has
# Classes without segments (token_type_ids), unless model_input_names lists them.
WITHOUT_SEGMENTS = ("roberta", "xlmroberta", "camembert", "mpnet", "esm", "gemma", "t5", "mt5", "umt5")
# Classes with segments in transformers 4 and without in 5: the version that wrote the files decides.
DISPUTED = ("pretrained", "tokenizersbackend", "albert")


class Settings(NamedTuple):
    """The settings of a tokenizer. None, or an absent key, means the default of the tokenizer's class."""

    # The class in lower case without "Tokenizer" and "Fast"; if none is named, the model's type without dashes.
    class_name: str = ""
    tokenizer_class: str | None = None  # as it is written
    flags: Mapping[str, bool] = {}
    named: Mapping[str, str] = {}  # special tokens by role
    added: Mapping[int, AddedToken] = {}  # tokens by id
    described: bool = False  # `added` comes from tokenizer_config.json (added_tokens_decoder)
    special: tuple[AddedToken, ...] = ()  # special tokens with or without a role; added if the tokenizer lacks them
    markers: tuple[str, ...] = ()  # words such as "[Q]" that are special tokens if the vocabulary has them
    end: str | None = None  # eos_token
    extra_ids: int | None = None  # marks <extra_id_0>, … of T5's vocabulary
    max_length: int | None = None
    cut_left: bool | None = None  # truncation_side is "left"; None if it is absent
    fill_left: bool | None = None  # padding_side is "left"; None if it is absent
    lowercase_first: bool = False  # convert texts to lower case before the tokenizer's own normalizer
    split_special: bool = False  # tokenize special tokens in a text like any words
    has_segments: bool = True  # the second text of a pair has segment 1
    disputed: bool = False  # transformers 4 and 5 disagree on `has_segments`
    adds_special: bool = True  # put special tokens around a text
    drops_unknown: bool = False  # leave out pieces that the vocabulary lacks
    chat: "ChatTemplate | None" = None  # the template for pairs

    def flag(self, name: str, default: bool) -> bool:
        return self.flags.get(name, default)


def read_settings(folder: Folder, overruling: Mapping[str, Any] | None = None) -> Settings:
    """Read a tokenizer's settings in a checkpoint's folder; files may be missing, but their contents must be valid.

    overruling: settings that override tokenizer_config.json.
    """
    file = folder.file("tokenizer_config.json")
    config = JsonSettings({**folder.optional(file.name), **(overruling or {})}, file)
    model = folder.optional("config.json")
    named_class = config.get("tokenizer_class") or model.get("tokenizer_class")
    tokenizer_class = named_class if isinstance(named_class, str) else None
    class_name = _class_name(tokenizer_class, str(model.get("model_type", "")))
    special = _special_settings(folder, config, class_name)
    values = {role: special[f"{role}_token"] for role in SPECIAL if special.get(f"{role}_token") is not None}
    tokens = {role: _token(value, file, f"{role}_token") for role, value in values.items()}
    all_special = (*tokens.values(), *_extra(special, file))
    segments = _segments(config, class_name, str(model.get("transformers_version", "")))
    padding = {"padding_side": "left" if class_name == "gemma" else None} | config
    return Settings(
        class_name=class_name,
        tokenizer_class=tokenizer_class,
        flags={name: config.flag(name, False) for name in FLAGS if config.get(name) is not None},
        named={role: token.content for role, token in tokens.items() if role in NAMED},
        added=_added(folder, config, {token.content for token in all_special}),
        described="added_tokens_decoder" in config,
        special=all_special,
        end=tokens["eos"].content if "eos" in tokens else None,
        extra_ids=_extra_ids(config.get("extra_ids"), file),
        max_length=_max_length(config.get("model_max_length", config.get("max_len")), file),
        cut_left=_is_left(config, "truncation_side", file),
        fill_left=_is_left(padding, "padding_side", file),
        split_special=config.flag("split_special_tokens", False),
        has_segments=segments.used,
        disputed=segments.disputed,
    )


def _class_name(tokenizer_class: str | None, model_type: str) -> str:
    """Shorten the name of a class to the key that the tables here use; without one, the model's type decides."""
    name = tokenizer_class or OF_MODELS.get(model_type, model_type).replace("-", "")
    return name.removesuffix("Fast").removesuffix("Tokenizer").lower()


def _special_settings(folder: Folder, config: JsonSettings, class_name: str) -> dict[str, Any]:
    """Merge the settings that name special tokens, in the order in which transformers lets them override."""
    special = {**config, **folder.optional("special_tokens_map.json")}
    if "added_tokens_decoder" in config:  # then transformers reads the special tokens here
        special |= config
    if class_name == "esm":  # ESM puts its eos token where others have sep
        special.setdefault("sep_token", special.get("eos_token"))
    return special


class SegmentUse(NamedTuple):
    """used: the second text of a pair has segment 1. disputed: transformers 4 and 5 disagree on that."""

    used: bool
    disputed: bool = False


def _segments(config: JsonSettings, class_name: str, version: str) -> SegmentUse:
    """Find if a tokenizer gives segments: from model_input_names, else from its class."""
    inputs = config.get("model_input_names")
    if isinstance(inputs, list):
        return SegmentUse("token_type_ids" in inputs)
    if class_name not in DISPUTED:
        return SegmentUse(class_name not in WITHOUT_SEGMENTS)
    written_by_5 = class_name == "tokenizersbackend" or version.startswith(("5.", "6."))
    return SegmentUse(not written_by_5, disputed=True)


def _max_length(value: Any, file: Path) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not value >= 1:
        raise BertcliError(f"{file} has the model_max_length {quoted(value)}: set it to a number of tokens.")
    return None if value >= UNLIMITED else int(value)


def _extra_ids(value: Any, file: Path) -> int | None:
    if value is None:
        return None
    if type(value) is not int or not 0 <= value <= MOST_EXTRA_IDS:
        raise BertcliError(f"{file} has the extra_ids {quoted(value)}: set it to a number from 0 to {MOST_EXTRA_IDS}.")
    return value


def _is_left(config: Mapping[str, Any], key: str, file: Path) -> bool | None:
    side = config.get(key)
    if side not in (None, "left", "right"):
        raise BertcliError(f"{file} has the {key} {quoted(side)}: set it to left or right.")
    return None if side is None else bool(side == "left")


def _token(value: Any, file: Path, key: str, *, special: bool = True) -> AddedToken:
    """Make an added token from a string, or from an object with the keys `content`, `lstrip` and so on.

    Without the argument `special`, the object's key `special` decides whether it is a special token.
    """
    fields = value if isinstance(value, dict) else {"content": value}
    switches = {name: fields.get(name) is True for name in ("lstrip", "rstrip", "single_word", "normalized")}
    try:
        token = AddedToken(fields["content"], special=special or fields.get("special") is True, **switches)
    except (LookupError, TypeError, UnicodeEncodeError):  # not a text, or one with half a pair of surrogates
        token = AddedToken("")
    if not token.content:
        raise BertcliError(
            f"{file} has the {key} {quoted(value)}, which is not a token: correct it, or use another model."
        )
    return token


def _extra(special: dict[str, Any], file: Path) -> tuple[AddedToken, ...]:
    """Read special tokens without a role: additional_special_tokens (transformers 4), extra_special_tokens (5)."""
    lists = [special.get(key) or [] for key in ("additional_special_tokens", "extra_special_tokens")]
    values = [list(tokens.values()) if isinstance(tokens, dict) else tokens for tokens in lists]
    if not all(isinstance(tokens, list) for tokens in values):
        raise BertcliError(
            f"{file} has additional_special_tokens or extra_special_tokens that are not a list: correct it."
        )
    return tuple(_token(value, file, "added token") for tokens in values for value in tokens)


def _added(folder: Folder, config: dict[str, Any], special: set[str]) -> dict[int, AddedToken]:
    """Read added tokens by id: added_tokens_decoder of tokenizer_config.json, else added_tokens.json."""
    file = folder.file("tokenizer_config.json")
    decoder = config.get("added_tokens_decoder")
    if decoder is None:
        file = folder.file("added_tokens.json")
        decoder = {
            _id(id, file): {"content": token, "special": token in special, "normalized": token not in special}
            for token, id in folder.optional(file.name).items()
        }
    decoder = decoder or {}
    if not isinstance(decoder, dict):
        raise BertcliError(
            f"{file} has the added_tokens_decoder {quoted(decoder)}, which is not an object: correct it, or use "
            "another model."
        )
    return {_id(key, file): _token(value, file, "added token", special=False) for key, value in decoder.items()}


def _id(value: Any, file: Path) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit():  # a key of JSON
        return int(value)
    if type(value) is not int or value < 0:
        raise BertcliError(
            f"{file} gives an added token the id {quoted(value)}, not a whole number: correct it, or use another model."
        )
    return value
