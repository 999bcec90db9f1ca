"""The fields of requests: what a JSON object must hold to be one, and how OpenAPI says it.

A request is a dataclass; its fields' types, defaults and `help` are read both for the checks and for the description.
"""

import json
from dataclasses import MISSING, Field, field, fields, is_dataclass
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from bertcli.errors import shown

T = TypeVar("T")
NAMES = {str: "a string", int: "a whole number", float: "a number", bool: "true or false", dict: "an object"}
KINDS = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object"}


class Refused(Exception):
    """A request that is not answered: its status, why and what to do, the field that is wrong, and a word for it."""

    def __init__(self, status: int, why: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.why = why
        self.param = param
        self.code = code


def described(help: str, default: Any = MISSING, least: float | None = None, other: tuple[str, ...] = ()) -> Any:
    """A field of a request; required without a default. `other` are names that other clients have for it."""
    return field(default=default, metadata={"help": help, "least": least, "other": other})


def parsed(body: bytes) -> dict[str, Any]:
    """The JSON object of a request's body. Errors: Refused."""
    try:
        value = json.loads(body, parse_constant=_no_number, object_pairs_hook=_once)
    except RecursionError:
        raise Refused(400, "The body is nested too deeply.", code="bad_json") from None
    except ValueError as error:  # of UTF-8, too
        raise Refused(400, f"The body is not JSON: {error}.", code="bad_json") from None
    if not isinstance(value, dict):
        raise Refused(422, f"The body must be a JSON object, not {shown(value)}.", code="wrong_shape")
    return value


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object; ValueError for a name that comes twice, of which one would be dropped."""
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a name comes twice in an object")
    return value


# -------------------------------------------------------------------------------------------------------- the checks


def read(cls: type[T], body: dict[str, Any], within: str = "") -> T:
    """A request of this class; unknown names are ignored, null is a value that is not given. Errors: Refused.

    `within` is where in a request it stands, for messages.
    """
    values: dict[str, Any] = {}
    for item in fields(cls):  # type: ignore[arg-type]
        names = [name for name in (item.name, *_other(item)) if body.get(name) is not None]
        if names:
            param = within + names[0]
            values[item.name] = _checked(item.type, body[names[0]], param)
            least = item.metadata.get("least")
            if least is not None and values[item.name] < least:
                raise _unfit(param, body[names[0]], f"at least {least}")
        elif item.default is MISSING and item.default_factory is MISSING:
            raise Refused(422, f"{within}{item.name} is missing.", within + item.name, "missing")
    return cls(**values)


def _checked(hint: Any, value: Any, param: str) -> Any:
    """A value of one of the types in `hint`."""
    entry: Refused | None = None
    for kind in _kinds(hint):
        if get_origin(kind) is Literal:
            if isinstance(value, str) and value.lower() in get_args(kind):
                return value.lower()
        elif get_origin(kind) is list:
            if isinstance(value, list):
                try:
                    return [_checked(get_args(kind)[0], one, f"{param}[{i}]") for i, one in enumerate(value)]
                except Refused as refused:  # it may be a list of another kind
                    entry = entry or refused
        elif isinstance(kind, type) and is_dataclass(kind):
            if isinstance(value, dict):
                return read(kind, value, f"{param}.")
        elif kind is float and isinstance(value, int | float) and not isinstance(value, bool):
            return float(value)
        elif isinstance(value, get_origin(kind) or kind) and isinstance(value, bool) == (kind is bool):
            return _encodable(value, param) if isinstance(value, str) else value
    raise entry or _unfit(param, value, " or ".join(map(_name, _kinds(hint))))


def _encodable(text: str, param: str) -> str:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused(422, f"{param} has half a surrogate pair, which is no character.", param, "wrong_shape") from None
    return text


def _unfit(param: str, value: Any, wanted: str) -> Refused:
    return Refused(422, f"{param} must be {wanted}, not {shown(value)}.", param, "wrong_shape")


def _kinds(hint: Any) -> tuple[Any, ...]:
    """The types of which a value is one, without None."""
    several = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    return tuple(kind for kind in several if kind is not NoneType)


def _other(item: Field[Any]) -> tuple[str, ...]:
    return tuple(item.metadata.get("other", ()))


def _name(kind: Any) -> str:
    if get_origin(kind) is Literal:
        return " or ".join(map(json.dumps, get_args(kind)))
    if get_origin(kind) is list:
        return f"a list whose entries are each {' or '.join(map(_name, _kinds(get_args(kind)[0])))}"
    return NAMES.get(get_origin(kind) or kind, "an object")


# --------------------------------------------------------------------------------------------------- the description


def schema(hint: Any) -> dict[str, Any]:
    """The schema, as OpenAPI 3.1 has them, of a type or of a dataclass."""
    if is_dataclass(hint):
        return {
            "type": "object",
            "properties": {item.name: _property(item) for item in fields(hint)},
            "required": [item.name for item in fields(hint) if item.default is item.default_factory is MISSING],
        }
    several = [_single(kind) for kind in _kinds(hint)]
    return several[0] if len(several) == 1 else {"anyOf": several}


def _property(item: Field[Any]) -> dict[str, Any]:
    described = schema(item.type)
    if item.metadata.get("help"):
        described |= {"description": item.metadata["help"]}
    if item.metadata.get("least") is not None:
        described |= {"minimum": item.metadata["least"]}
    return described if item.default in (MISSING, None) else {**described, "default": item.default}


def _single(kind: Any) -> dict[str, Any]:
    if get_origin(kind) is Literal:
        return {"type": "string", "enum": [*get_args(kind)]}
    if get_origin(kind) is list:
        return {"type": "array", "items": schema(get_args(kind)[0])}
    return schema(kind) if is_dataclass(kind) else {"type": KINDS[get_origin(kind) or kind]}
