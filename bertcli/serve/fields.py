"""The fields of requests: what a JSON object must hold to be one, and how OpenAPI says it.

A request is a dataclass whose fields are declared as options are. A schema is made from their types, and what is sent
is checked against that: what is described is what is accepted.
"""

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import MISSING
from functools import cache
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints, is_typeddict

from bertcli.errors import shown
from bertcli.files.texts import is_unicode
from bertcli.tasks.options import declared, kinds_of, option

T = TypeVar("T")
Schema = dict[str, Any]
KINDS = {str: "string", int: "integer", float: "number", bool: "boolean", dict: "object", list: "array"}
WORDS: dict[str, tuple[Any, str]] = {  # of a schema's type, those of Python, and how a message calls it
    "string": (str, "a string"), "integer": (int, "a whole number"), "number": ((int, float), "a number"),
    "boolean": (bool, "true or false"), "object": (dict, "an object"), "array": (list, "a list"),
}  # fmt: skip


class Refused(Exception):
    """A request that is not answered: its status, why and what to do, the field that is wrong, and a word for it."""

    def __init__(self, status: int, why: str, param: str | None = None, code: str | None = None) -> None:
        super().__init__(why)
        self.status, self.why, self.param, self.code = status, why, param, code


def is_openai(path: str) -> bool:
    """Whether clients of a route know OpenAI's names and errors, or Jina's; else those of text-embeddings-inference."""
    return path.startswith(("/v1/", "/v2/", "/api/", "/embeddings"))


def asked(help: str, default: Any = MISSING, *names: str, least: int | None = None) -> Any:
    """A field of a request; required without a default. `names` are those that other clients have for it."""
    return option(default, "", help, *names, least=least)


def parsed(body: bytes) -> dict[str, Any]:
    """The JSON object of a request's body. Errors: Refused."""
    try:
        value = _DECODER.decode(body.decode())
    except (ValueError, RecursionError) as error:  # of UTF-8, too
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


_DECODER = json.JSONDecoder(parse_constant=_no_number, object_pairs_hook=_once)


# ------------------------------------------------------------------------------------------------------- the schemas


def schema(kind: Any) -> Schema:
    """The schema, as OpenAPI 3.1 has them, of a type; null is a value that is not given."""
    kind, *others = [one for one in kinds_of(kind) if one is not NoneType]
    if others:
        return {"anyOf": [schema(one) for one in (kind, *others)]}
    if get_origin(kind) is Literal:
        return {"enum": [*get_args(kind)]}
    if get_origin(kind) in (list, Sequence, Iterable):
        return {"type": "array", "items": schema(get_args(kind)[0])}
    if is_typeddict(kind):
        of_names = get_type_hints(kind)
        return {
            "type": "object",
            "properties": {name: schema(of_names[name]) for name in of_names},
            "required": [*of_names],
        }
    return {"type": KINDS[get_origin(kind) or kind]}


def _properties(cls: Any) -> dict[str, Schema]:
    """The schemas of the fields of a request, or of a task's options."""
    made = {}
    for item in declared(cls):
        described = {"description": item.metadata["settings"]["help"], **schema(item.type)}
        least, default = item.metadata["least"], item.default
        described |= {} if least is None else {"minimum": least}
        made[item.name] = described | ({} if default in (MISSING, None) else {"default": default})
    return made


properties: Callable[[Any], dict[str, Schema]] = cache(_properties)


# -------------------------------------------------------------------------------------------------------- the checks


def read(cls: type[T], body: dict[str, Any]) -> T:
    """A request of this class; unknown names are ignored. Errors: Refused."""
    values = {}
    for item in declared(cls):
        name = next((name for name in (item.name, *item.metadata["names"]) if body.get(name) is not None), None)
        if name is not None:
            values[item.name] = fitting(body[name], properties(cls)[item.name], name)
        elif item.default is MISSING:
            raise Refused(422, f"{item.name} is missing.", item.name, "missing")
    return cls(**values)


def fitting(value: Any, wanted: Schema, param: str) -> Any:
    """A value that is as its schema says, words in small letters. Errors: Refused."""
    if not _fits(value, wanted):
        raise Refused(422, f"{param} must be {_words(wanted)}, not {shown(value)}.", param, "wrong_shape")
    return value.lower() if "enum" in wanted else value


def _fits(value: Any, wanted: Schema) -> bool:
    if "anyOf" in wanted:
        return any(_fits(value, one) for one in wanted["anyOf"])
    if "enum" in wanted:
        return isinstance(value, str) and value.lower() in wanted["enum"]
    kind = wanted["type"]
    if not isinstance(value, WORDS[kind][0]) or isinstance(value, bool) != (kind == "boolean"):
        return False
    if kind == "string":
        return is_unicode(value)
    if kind == "array":
        return all(_fits(one, wanted["items"]) for one in value)
    if kind == "object":
        return all(name in value and _fits(value[name], one) for name, one in wanted.get("properties", {}).items())
    return bool(value >= wanted.get("minimum", value))


def _words(wanted: Schema) -> str:
    """What a value must be, for a message."""
    if "anyOf" in wanted:
        return " or ".join(map(_words, wanted["anyOf"]))
    if "enum" in wanted:
        return " or ".join(map(json.dumps, wanted["enum"]))
    least, within = f" of at least {wanted['minimum']}" if "minimum" in wanted else "", ""
    if wanted["type"] == "array":
        within = f" whose entries are each {_words(wanted['items'])}"
    elif "properties" in wanted:
        within = f" with {' and '.join(wanted['properties'])}"
    return WORDS[wanted["type"]][1] + least + within
