"""Parse requests: JSON, pydantic models that check it, and the refusal (`Refusal`) of what does not fit.

Each API's file declares its requests as subclasses of `RequestModel`. OpenAPI's schemas are made of the same classes,
so the description and the checks agree. pydantic's own messages name Python types, so the messages here are made from
the schema: "dimensions must be a whole number of at least 1, not 1.5."
"""

import json
import re
from collections.abc import Mapping
from functools import cache
from types import NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from bertcli.errors import quoted

R = TypeVar("R", bound="JsonObject")
T = TypeVar("T")
Schema = dict[str, Any]
# Bytes of a body: a shorter one is parsed in a millisecond.
LONG_BODY = 65_536
# Most values in a body; the largest number that a request can need are token ids.
MOST_VALUES = 2_000_000
SPACE = re.compile(r"[ \t\n\r]*")
HALF_PAIR = re.compile(r"\\u[dD][89a-fA-F]")  # an escape that may be half a pair
WORDS = {  # how a message calls a type of JSON Schema
    "string": "a string", "integer": "a whole number", "number": "a number", "boolean": "true or false",
    "object": "an object", "array": "a list",
}  # fmt: skip


class Refusal(Exception):
    """The error for a refused request: status, message (what is wrong, what to do), field, code, headers."""

    def __init__(
        self, status: int, why: str, param: str | None = None, code: str | None = None, retry_after: int | None = None
    ) -> None:
        super().__init__(why)
        self.status, self.why, self.param, self.code = status, why, param, code
        self.headers = {} if retry_after is None else {"Retry-After": str(retry_after)}


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


class JsonObject(BaseModel):
    """Base of JSON objects in requests. Unknown names are ignored; null counts as not given."""

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, body: Any) -> Any:
        return {key: value for key, value in body.items() if value is not None} if isinstance(body, dict) else body


class RequestModel(JsonObject):
    """A request to a model."""

    model: str | None = Field(
        None, description="The model's name. One that is not served means the model that fits, if only one does."
    )


# One wrong entry is enough: pydantic would note each of millions.
Listed = Annotated[list[T], Field(fail_fast=True)]
Side = Annotated[Literal["left", "right"], BeforeValidator(_lower)]


class TruncatingRequest(RequestModel):
    """A request whose texts may be too long for the model."""

    truncate: bool | None = Field(None, description="Whether a text that is too long is cut, or refused.")
    truncation_direction: Side | None = Field(None, description="The side at which it is cut; right is the end.")


def either(*names: str) -> AliasChoices:
    """The aliases of a field, since clients differ; OpenAPI's description has the first one."""
    return AliasChoices(*names)


def parse_json(body: bytes) -> dict[str, Any]:
    """The JSON object of a request's body. Errors: Refused."""
    try:
        text = body.decode()
        value = _DECODER.decode(text) if len(body) <= LONG_BODY else _read_in_steps(text)
    except (ValueError, RecursionError) as error:  # of UTF-8, too
        raise Refusal(400, f"The body is not JSON: {error}.", code="bad_json") from None
    if not isinstance(value, dict):
        raise Refusal(422, f"The body must be a JSON object, not {quoted(value)}.", code="wrong_shape")
    if HALF_PAIR.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            why = "The body has half a surrogate pair (\\ud800 to \\udfff), which is not a character."
            raise Refusal(422, why, code="wrong_shape") from None
    return value


def _read_in_steps(text: str) -> Any:
    """Parse a long JSON text value by value; json.loads would hold the interpreter's lock until it is done.

    Errors: ValueError; Refused for more values than any request needs.
    """
    count = 0

    def skip(at: int) -> int:
        return SPACE.match(text, at).end()  # type: ignore[union-attr]

    def read(at: int) -> tuple[Any, int]:
        nonlocal count
        count += 1
        if count > MOST_VALUES:
            raise Refusal(422, f"The body has more than {MOST_VALUES:,} values: send less at once.", code="too_many")
        opening = text[at : at + 1]
        if opening == "[":
            return read_list(skip(at + 1))
        if opening == "{":
            return read_object(skip(at + 1))
        return _DECODER.raw_decode(text, at)

    def read_list(at: int) -> tuple[list[Any], int]:
        values: list[Any] = []
        while text[at : at + 1] != "]" or values:
            value, at = read(at)
            values.append(value)
            at = skip(at)
            if text[at : at + 1] == "]":
                break
            at = skip(expect(",", at))
        return values, at + 1

    def read_object(at: int) -> tuple[dict[str, Any], int]:
        pairs: list[tuple[str, Any]] = []
        while text[at : at + 1] != "}" or pairs:
            name, at = _DECODER.raw_decode(text, at) if text[at : at + 1] == '"' else ("", expect('"', at))
            value, at = read(skip(expect(":", skip(at))))
            pairs.append((name, value))
            at = skip(at)
            if text[at : at + 1] == "}":
                break
            at = skip(expect(",", at))
        return _each_name_once(pairs), at + 1

    def expect(mark: str, at: int) -> int:
        if text[at : at + 1] != mark:
            raise json.JSONDecodeError(f"Expecting {mark!r}", text, at)
        return at + 1

    value, at = read(skip(0))
    if skip(at) != len(text):
        raise json.JSONDecodeError("Extra data", text, at)
    return value


def _no_number(name: str) -> Any:
    raise ValueError(f"{name} is no number")


def _each_name_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Make a dict of pairs. A name that comes twice is an error, since one of its values would be dropped silently."""
    value = dict(pairs)
    if len(value) < len(pairs):
        raise ValueError("a name comes twice in an object")
    return value


# Not orjson, which keeps the last of two equal names.
_DECODER = json.JSONDecoder(parse_constant=_no_number, object_pairs_hook=_each_name_once)


# ------------------------------------------------------------------------------------------------------- the checks


def validate(cls: type[R], body: Mapping[str, Any]) -> R:
    """Check a JSON object and make a request of it. Errors: Refused, which names the field."""
    try:
        return cls.model_validate(body)
    except ValidationError as error:
        raise _refusal(cls, body, error) from None


def _refusal(cls: type[JsonObject], body: Mapping[str, Any], error: ValidationError) -> Refusal:
    """The refusal for the first of pydantic's errors, in our words."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    root, prefix, path = _schema_of(cls), "", [str(part) for part in first["loc"]]
    schema = root
    if path[:1] == ["parameters"] and len(path) > 1 and isinstance(body.get("parameters"), dict):
        # The one field in whose fields a mistake is named, since they are a task's options.
        (reference, _) = root["properties"]["parameters"]["anyOf"]
        schema, body, prefix = _resolved(reference, root), body["parameters"], "parameters."
        cls, path = _parameters_of(cls), path[1:]
    name = path[0] if path else ""
    names = next((some for some in _names_of(cls) if name in some), (name,))
    given = next((one for one in names if body.get(one) is not None), name)
    if first["type"] == "missing" and len(path) == 1:
        return Refusal(422, f"{prefix}{name} is missing.", prefix + name, "missing")
    described = next((schema["properties"][one] for one in names if one in schema["properties"]), None)
    wanted = _words(described, root) if described else "as /openapi.json says"
    why = f"{prefix}{given} must be {wanted}, not {quoted(body.get(given))}."
    return Refusal(422, why, prefix + given, "wrong_shape")


_schema_of = cache(lambda cls: cls.model_json_schema())


def _parameters_of(cls: type[BaseModel]) -> type[JsonObject]:
    """The class of a request's field `parameters`."""
    found: type[JsonObject] = next(
        one for one in get_args(cls.model_fields["parameters"].annotation) if one is not NoneType
    )
    return found


def _names_of(cls: type[BaseModel]) -> list[tuple[str, ...]]:
    """The aliases of each field that has several."""
    aliases = [field.validation_alias for field in cls.model_fields.values()]
    return [tuple(map(str, alias.choices)) for alias in aliases if isinstance(alias, AliasChoices)]


def _resolved(schema: Schema, root: Schema) -> Schema:
    """Follow a schema's $ref, if it is one."""
    name = schema.get("$ref", "").rpartition("/")[2]
    found: Schema = root["$defs"][name] if name else schema
    return found


def _words(schema: Schema, root: Schema) -> str:
    """Describe a schema in a message: "a whole number of at least 1". root: has the definitions behind $ref."""
    schema = _resolved(schema, root)
    if "anyOf" in schema:
        return " or ".join(_words(one, root) for one in schema["anyOf"] if one.get("type") != "null")
    if "enum" in schema or "const" in schema:
        return " or ".join(map(json.dumps, schema.get("enum", [schema.get("const")])))
    text = WORDS[schema["type"]]
    if schema.get("items"):
        return f"{text} whose entries are each {_words(schema['items'], root)}"
    if "properties" in schema:
        return f"{text} with {' and '.join(schema['properties'])}"
    return f"{text} of at least {schema['minimum']}" if "minimum" in schema else text
