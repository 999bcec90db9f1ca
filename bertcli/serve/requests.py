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
from typing import Annotated, Any, Literal, NoReturn, TypeVar, get_args

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
# Bytes of a long body that are read at a time, which takes less than a millisecond.
STEP = 16_384
# Most characters of a text: the tokenizers library takes 200 to 450 bytes for each.
MOST_CHARACTERS = 500_000
# So many values does a list or an object count as: the garbage collector visits each, perhaps in the event loop.
CONTAINER = 10
# More than the digits that Python makes a whole number of.
LONGEST_WORD = 5000
SPACE = re.compile(rb"[ \t\n\r]+")
# A number, or true, false, null.
WORD = re.compile(rb"[-+.\w]{0,%d}" % LONGEST_WORD)
# Short values of a list, with the commas behind them.
RUN = re.compile(rb'(?:(?:"[^"\\]*(?:\\.[^"\\]*)*"|[-+.\w]+)[ \t\n\r]*,[ \t\n\r]*)+', re.DOTALL)
# A part of a string that ends neither within an escape nor within a surrogate pair.
PIECE = re.compile(
    rb'(?:[^"\\]+|\\[^u]|\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u(?![dD][89abAB])[0-9a-fA-F]{4})*',
    re.DOTALL,
)
# An escape that may be half a surrogate pair.
HALF_PAIR = re.compile(rb"\\u[dD][89a-fA-F]")
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


def parse_json(body: bytes, most_values: int) -> dict[str, Any]:
    """The JSON object of a request's body, which may have so many values. Errors: Refused."""
    try:
        value = _decoded(body) if len(body) <= LONG_BODY else _Reader(body, most_values).value()
    except (ValueError, RecursionError) as error:  # of UTF-8, too
        raise Refusal(400, f"The body is not JSON: {error}.", code="bad_json") from None
    if not isinstance(value, dict):
        raise Refusal(422, f"The body must be a JSON object, not {quoted(value)}.", code="wrong_shape")
    return value


def _decoded(some: bytes) -> Any:
    """Decode a JSON text. Errors: ValueError; Refused for half a surrogate pair."""
    value = _DECODER.decode(some.decode())
    if HALF_PAIR.search(some):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise _half_pair() from None
    return value


def _half_pair() -> Refusal:
    why = "The body has half a surrogate pair (\\ud800 to \\udfff), which is not a character."
    return Refusal(422, why, code="wrong_shape")


class _Reader:
    """Reads a long JSON text in steps of at most STEP bytes.

    json.loads would hold the interpreter's lock, and with it the event loop, until it is done.
    """

    def __init__(self, body: bytes, most_values: int) -> None:
        self._body, self._most = body, most_values
        self._at = self._count = 0

    def value(self) -> Any:
        """The value of the whole text. Errors: ValueError; Refused for more than any request needs."""
        value = self._value()
        if self._peek():
            self._fail("Extra data")
        return value

    def _value(self) -> Any:
        opening = self._peek()
        self._add(CONTAINER if opening in (b"[", b"{") else 1)
        if opening == b"[":
            return self._list()
        if opening == b"{":
            return self._object()
        if opening == b'"':
            return self._string()
        word = self._matched(WORD)
        if len(word) == LONGEST_WORD:
            self._fail(f"A number has more than {LONGEST_WORD} characters")
        if not word:
            self._fail("Expecting value")
        return _decoded(word)

    def _list(self) -> list[Any]:
        values: list[Any] = []
        self._at += 1
        while self._peek() != b"]" or values:
            run = self._matched(RUN)
            if run:
                some = _decoded(b"[" + run[: run.rindex(b",")] + b"]")
                self._add(len(some))
                values += some
            values.append(self._value())
            if self._peek() == b"]":
                break
            self._expect(b",")
        self._at += 1
        return values

    def _object(self) -> dict[str, Any]:
        pairs: list[tuple[str, Any]] = []
        self._at += 1
        while self._peek() != b"}" or pairs:
            if self._peek() != b'"':
                self._fail("Expecting a name in double quotes")
            name = self._string()
            self._expect(b":")
            pairs.append((name, self._value()))
            if self._peek() == b"}":
                break
            self._expect(b",")
        self._at += 1
        return _each_name_once(pairs)

    def _string(self) -> str:
        pieces: list[str] = []
        length = 0
        self._at += 1
        while self._body[self._at : self._at + 1] != b'"':
            piece = self._matched(PIECE)
            # The step may have ended within a character of several bytes.
            rest = len(piece) - len(piece.decode(errors="ignore").encode()) if len(piece) == STEP else 0
            piece = piece[: len(piece) - rest]
            self._at -= rest
            if not piece:
                if HALF_PAIR.match(self._body, self._at):
                    raise _half_pair()
                self._fail("A string has no end, or a wrong escape")
            pieces.append(_decoded(b'"' + piece + b'"'))
            length += len(pieces[-1])
            if length > MOST_CHARACTERS:
                why = f"A text has more than {MOST_CHARACTERS:,} characters: split it."
                raise Refusal(422, why, code="too_long")
        self._at += 1
        return "".join(pieces)

    def _peek(self) -> bytes:
        """The first byte that is no space; none at the end."""
        while self._matched(SPACE):
            pass
        return self._body[self._at : self._at + 1]

    def _matched(self, pattern: re.Pattern[bytes]) -> bytes:
        """Take what a pattern matches in the next STEP bytes."""
        found = pattern.match(self._body, self._at, self._at + STEP)
        if found is None:
            return b""
        self._at = found.end()
        return found[0]

    def _expect(self, mark: bytes) -> None:
        if self._peek() != mark:
            self._fail(f"Expecting {mark.decode()!r}")
        self._at += 1

    def _add(self, values: int) -> None:
        self._count += values
        if self._count > self._most:
            raise Refusal(422, f"The body has more than {self._most:,} values: send less at once.", code="too_many")

    def _fail(self, why: str) -> NoReturn:
        raise ValueError(f"{why} (byte {self._at:,})")


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


def validate(cls: type[R], body: Mapping[str, Any], most_inputs: int) -> R:
    """Check a JSON object and make a request of it, with lists of at most so many inputs.

    Errors: Refused, which names the field.
    """
    # Before pydantic looks at each of them, during which no other thread runs.
    for name in _all_names_of(cls):
        given = body.get(name)
        if isinstance(given, list) and len(given) > most_inputs and not isinstance(given[0], int):
            raise Refusal(422, f"There are {len(given):,} texts, more than {most_inputs:,}.", name, "too_many")
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
    expected = _words(described, root) if described else "as /openapi.json says"
    why = f"{prefix}{given} must be {expected}, not {quoted(body.get(given))}."
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


@cache
def _all_names_of(cls: type[BaseModel]) -> frozenset[str]:
    """The names by which a request may have the fields of a class."""
    return frozenset(cls.model_fields).union(*_names_of(cls))


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
