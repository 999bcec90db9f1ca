"""Parse requests: JSON, pydantic models that check it, and the refusal (`Refusal`) of what does not fit.

Each API's file declares its requests as subclasses of `RequestModel`. OpenAPI's schemas are made of the same classes,
so the description and the checks agree. pydantic's own messages name Python types, so the messages here are made from
the schema: "dimensions must be a whole number of at least 1, not 1.5."
"""

import json
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from types import MappingProxyType, NoneType
from typing import Annotated, Any, Literal, TypeVar, get_args

import orjson
from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from bertcli.errors import nearest, quoted
from bertcli.tasks.limits import too_many_texts

R = TypeVar("R", bound="JsonObject")
T = TypeVar("T")
Schema = dict[str, Any]
# Bytes of a body: a shorter one is parsed in a millisecond.
LONG_BODY = 65_536
# Most characters of a text: the tokenizers library takes 200 to 450 bytes for each.
MOST_CHARACTERS = 500_000
# Similarity (of difflib) from which an unknown field counts as a misspelt one; how many of them are looked at.
NEARLY, MOST_UNKNOWN = 0.85, 20
# Characters of a name that may be misspelt.
LONGEST_NAME = 40
# Words of messages for the types of JSON Schema.
TYPE_WORDS = {
    "string": "a string", "integer": "a whole number", "number": "a number", "boolean": "true or false",
    "object": "an object", "array": "a list",
}  # fmt: skip


# Words of messages for an entry of a list, by the type of those before it.
WORDS_OF_ENTRIES: dict[type, str] = {str: "a string", int: "a whole number", list: "a list", dict: "an object"}


class Refusal(Exception):
    """The error for a refused request.

    why: the message, which says what is wrong and what to do. param: the field at fault. code: a word for programs.
    retry_after: seconds until the client may send the request again.
    """

    def __init__(
        self,
        status: int,
        why: str,
        param: str | None = None,
        code: str | None = None,
        retry_after: int | None = None,
    ) -> None:
        super().__init__(why)
        self.status, self.why, self.param, self.code = status, why, param, code
        self.headers = {} if retry_after is None else {"Retry-After": str(retry_after)}


def _lower(value: object) -> object:
    return value.lower() if isinstance(value, str) else value


class JsonObject(BaseModel):
    """Base of JSON objects in requests; null counts as not given.

    Unknown names are ignored, since clients send those of other servers; one that is nearly a known name is refused.
    """

    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, body: Any) -> Any:
        if not isinstance(body, dict):
            return body
        return {key: value for key, value in body.items() if value is not None}


class RequestModel(JsonObject):
    """A request to a model."""

    model: str | None = Field(
        None,
        description="The model's name. Any other name is accepted if only one model fits the route.",
    )


# One wrong entry is enough: pydantic would note each of millions.
Listed = Annotated[list[T], Field(fail_fast=True)]
Side = Annotated[Literal["left", "right"], BeforeValidator(_lower)]


class TruncatingRequest(RequestModel):
    """A request whose texts may be too long for the model."""

    truncate: bool | None = Field(None, description="A text that is too long: true cuts it, false refuses it.")
    truncation_direction: Side | None = Field(None, description="The side that is cut; right is the end of the text.")


def either(*names: str) -> AliasChoices:
    """Names under which a field may be sent, since clients differ. OpenAPI lists the first one."""
    return AliasChoices(*names)


def parse_json(body: bytes) -> dict[str, Any]:
    """Parse a request's body, a JSON object. Errors: Refusal."""
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise Refusal(400, f"The body is not JSON: {error}.", code="bad_json") from None
    if not isinstance(value, dict):
        raise Refusal(422, f"The body must be a JSON object, not {quoted(value)}.", code="wrong_shape")
    return value


# ------------------------------------------------------------------------------------------------------- the checks


def validate(
    cls: type[R], body: Mapping[str, Any], most_inputs: int, options: Mapping[str, str] = MappingProxyType({})
) -> R:
    """Check a JSON object, and make a request of it whose lists have at most `most_inputs` entries.

    options: those that the route's command has, each with the path of the route that does it, or "".
    Errors: Refusal, which names the field.
    """
    # Before pydantic looks at each of them, during which no other thread runs.
    for name in _all_names_of(cls):
        values = body.get(name)
        if not isinstance(values, list) or len(values) <= most_inputs:
            continue
        # The ids of one text are limited as its tokens are.
        if not isinstance(values[0], int):
            raise Refusal(422, str(too_many_texts(len(values), most_inputs)), name, "too_many")
    _refuse_unheeded(cls, body, options)
    try:
        return cls.model_validate(body)
    except ValidationError as error:
        raise _refusal(cls, body, error) from None


def _refuse_unheeded(cls: type[JsonObject], body: Mapping[str, Any], options: Mapping[str, str]) -> None:
    """Refuse what would be ignored though it is meant for this server: a misspelt field, an option in another place.

    Errors: Refusal.
    """
    known, of_task = _all_names_of(cls), _parameters_of(cls)
    in_parameters = frozenset[str]() if of_task is None else _all_names_of(of_task)
    unknown = [name for name, value in body.items() if name not in known and value is not None]
    for name in unknown:
        if name in in_parameters:
            raise Refusal(422, f"{name} is an option of the task: send it in parameters.", name, "unknown_field")
        if name in options:
            place = f"send the rest to {options[name]}" if options[name] else "leave it out"
            why = f"{name} is an option of the command that this route does not have: {place}."
            raise Refusal(422, why, name, "unknown_field")
    for name in unknown[:MOST_UNKNOWN]:
        # A longer one is no misspelt name, and takes long to compare.
        if len(name) <= LONGEST_NAME and (near := get_close_matches(name, known, n=1, cutoff=NEARLY)):
            why = f"There is no field {quoted(name)}; did you mean {near[0]}?"
            raise Refusal(422, why, name, "unknown_field")
    parameters = body.get("parameters")
    if of_task is None or not isinstance(parameters, dict):
        return
    # Before pydantic, which would make an error of each.
    for name, value in parameters.items():
        if name not in in_parameters and value is not None:
            shown = name[:LONGEST_NAME]
            why = f"parameters.{shown} is no option of this route. {nearest(shown, sorted(in_parameters))}"
            raise Refusal(422, why, f"parameters.{shown}", "unknown_field")


def _refusal(cls: type[JsonObject], body: Mapping[str, Any], error: ValidationError) -> Refusal:
    """The refusal for the first of pydantic's errors, in our words."""
    first, *_ = error.errors(include_url=False, include_context=False, include_input=False)
    path = [str(key) for key in first["loc"]]
    root = _schema_of(cls)
    schema = root
    prefix = ""
    if path[:1] == ["parameters"] and len(path) > 1 and isinstance(body.get("parameters"), dict):
        # The one field in whose fields a mistake is named, since they are a task's options.
        (reference, _) = root["properties"]["parameters"]["anyOf"]
        schema = _resolved(reference, root)
        body = body["parameters"]
        cls = _parameters_of(cls) or cls
        prefix = "parameters."
        path = path[1:]
    name = path[0] if path else ""
    if first["type"] == "missing" and len(path) == 1:
        return Refusal(422, f"{prefix}{name} is missing.", prefix + name, "missing")
    names = next((aliases for aliases in _names_of(cls) if name in aliases), (name,))
    sent_name = next((sent for sent in names if body.get(sent) is not None), name)
    properties = schema["properties"]
    described = next((properties[sent] for sent in names if sent in properties), None)
    sent = body.get(sent_name)
    if isinstance(sent, list) and described and "array" in json.dumps(described):
        for index, entry in enumerate(sent):
            if type(entry) is not type(sent[0]) and type(sent[0]) in WORDS_OF_ENTRIES:
                why = (
                    f"{prefix}{sent_name}[{index}] must be {WORDS_OF_ENTRIES[type(sent[0])]}, as the entries before it"
                )
                return Refusal(422, f"{why}, not {json.dumps(entry)[:60]}.", prefix + sent_name, "wrong_shape")
    expected = _words(described, root) if described else "as /openapi.json describes it"
    why = f"{prefix}{sent_name} must be {expected}, not {quoted(body.get(sent_name))}."
    return Refusal(422, why, prefix + sent_name, "wrong_shape")


@cache
def _schema_of(cls: type[BaseModel]) -> Schema:
    return cls.model_json_schema()


@cache
def _parameters_of(cls: type[BaseModel]) -> type[JsonObject] | None:
    """The class of a request's field `parameters`, which is annotated with it or None; None if it may be anything."""
    field = cls.model_fields.get("parameters")
    classes = {*get_args(field.annotation)} - {NoneType} if field is not None else set()
    return next(iter(classes), None)


def _names_of(cls: type[BaseModel]) -> list[tuple[str, ...]]:
    """The aliases of each field that has several."""
    aliases = [field.validation_alias for field in cls.model_fields.values()]
    return [tuple(map(str, alias.choices)) for alias in aliases if isinstance(alias, AliasChoices)]


@cache
def _all_names_of(cls: type[BaseModel]) -> frozenset[str]:
    """The names under which the fields of a class may be sent."""
    return frozenset(cls.model_fields).union(*_names_of(cls))


def _resolved(schema: Schema, root: Schema) -> Schema:
    """Follow a schema's $ref into `root`; a schema without one is itself."""
    name = schema.get("$ref", "").rpartition("/")[2]
    referred: Schema = root["$defs"][name] if name else schema
    return referred


def _words(schema: Schema, root: Schema) -> str:
    """Describe a schema for a message: "a whole number of at least 1". root: has the definitions behind $ref."""
    schema = _resolved(schema, root)
    if "anyOf" in schema:
        # null is not offered: it counts as not given.
        choices = [choice for choice in schema["anyOf"] if choice.get("type") != "null"]
        lists = [choice for choice in choices if choice.get("type") == "array"]
        if len(lists) > 1:
            # The lists may have lists of their own: what may be in them says /openapi.json.
            others = [_words(choice, root) for choice in choices if choice not in lists]
            return " or ".join([*others, "a list"])
        return " or ".join(_words(choice, root) for choice in choices)
    if "enum" in schema:
        return " or ".join(map(json.dumps, schema["enum"]))
    if "const" in schema:
        return json.dumps(schema["const"])
    text = TYPE_WORDS[schema["type"]]
    if schema.get("items"):
        return f"{text} whose entries are each {_words(schema['items'], root)}"
    if "properties" in schema:
        return f"{text} with {' and '.join(schema['properties'])}"
    if "minimum" in schema:
        return f"{text} of at least {schema['minimum']}"
    return text
