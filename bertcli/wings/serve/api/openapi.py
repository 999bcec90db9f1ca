"""The route /openapi.json: OpenAPI 3.1, generated from the routes, their pydantic models and the tasks' records."""

import re
from collections.abc import Iterator, Mapping
from functools import cache
from types import NoneType
from typing import Any, Literal, get_args, get_origin

from pydantic import TypeAdapter
from starlette.responses import Response

from bertcli._version import __version__
from bertcli.errors import BertcliError
from bertcli.tasks.options import declared, types_of
from bertcli.tasks.registry import TaskSpec
from bertcli.wings.serve.exchange import Exchange
from bertcli.wings.serve.requests import Schema
from bertcli.wings.serve.routes import ROUTES, Route, has_openai_errors, route

ERRORS = {
    400: "The body is not JSON, or has no text.",
    401: "The API key is missing or wrong.",
    403: "The request comes from a page of another origin.",
    404: "The route or the model does not exist.",
    405: "The route does not take this method.",
    413: "The body is too large.",
    415: "The body is not application/json, or is compressed.",
    421: "The Host header is not a name of this server.",
    422: "A field is wrong, does not fit the model, or is beyond a limit.",
    429: "Too many requests are waiting; Retry-After says in how many seconds to try again.",
    500: "The weights are damaged, or the server failed.",
    503: "The server is shutting down.",
    504: "The request was not done in time.",
}
JSON_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", None: "null"}
STRING_OR_NULL: Schema = {"type": ["string", "null"]}
ERROR: Schema = {
    "type": "object",
    "properties": {"error": {"type": "string"}, "error_type": {"type": "string"}},
    "required": ["error", "error_type"],
}
OPENAI_ERROR: Schema = {
    "type": "object",
    "properties": {
        "error": {
            "type": "object",
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": STRING_OR_NULL,
                "code": STRING_OR_NULL,
            },
            "required": ["message", "type", "param", "code"],
        }
    },
    "required": ["error"],
}


@route("/openapi.json")
async def description(exchange: Exchange) -> dict[str, Any]:
    """This description of the server, in OpenAPI 3.1."""
    # A few kilobytes a route: written in another thread, as a long answer is.
    exchange.cost.predictions += len(ROUTES) * 100
    return await exchange.in_thread(described)


@cache
def described() -> dict[str, Any]:
    """The description of all routes, as JSON."""
    schemas, components = _schemas()
    components |= {"Error": ERROR, "OpenAIError": OPENAI_ERROR}
    paths: dict[str, Any] = {}
    for number, entry in enumerate(ROUTES):
        method = "get" if entry.request is None else "post"
        for path in entry.paths:
            methods = paths.setdefault(path.replace(":path", ""), {})
            methods[method] = _operation(entry, path, number, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "bertcli", "version": __version__},
        "paths": paths,
        "components": {"schemas": components},
    }


# A route's number in ROUTES, and which of its two schemas.
Key = tuple[int, Literal["request", "response"]]


def _schemas() -> tuple[dict[Key, Schema], dict[str, Schema]]:
    """The schema of each route's request and answer, and the schemas that they refer to."""
    inputs: list[Any] = []
    for number, entry in enumerate(ROUTES):
        if entry.request is not None:
            inputs.append(((number, "request"), "validation", TypeAdapter(entry.request)))
        if _has_type(entry.response):
            inputs.append(((number, "response"), "serialization", TypeAdapter(entry.response)))
    by_key_and_mode, shared = TypeAdapter.json_schemas(inputs, ref_template="#/components/schemas/{model}")
    schemas: dict[Key, Any] = {key: schema for (key, _mode), schema in by_key_and_mode.items()}
    for number, entry in enumerate(ROUTES):
        if isinstance(entry.response, TaskSpec):
            schemas[number, "response"] = _of_task(entry.response, entry.uses[0])
    return schemas, dict(shared.get("$defs", {}))


def _has_type(response: Any) -> bool:
    """True if an answer is JSON with a declared type; a task's records are described from its spec instead."""
    if isinstance(response, TaskSpec) or response is Any:
        return False
    return not (isinstance(response, type) and issubclass(response, Response))


def _operation(entry: Route, path: str, number: int, schemas: Mapping[Key, Schema]) -> dict[str, Any]:
    """OpenAPI's operation of a route at one of its paths. number: the route's in ROUTES."""
    in_path = re.findall(r"\{(\w+)", path)
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in in_path
    ]
    parameters += [{"name": name, "in": "query", "schema": {}} for name in entry.query if name not in in_path]
    answer: dict[str, Any] = {"description": "The answer; X-Truncated lists the texts that were cut."}
    if (number, "response") in schemas or not isinstance(entry.response, type):
        answer["content"] = {"application/json": {"schema": schemas.get((number, "response"), {})}}
    responses: dict[str, Any] = {"200": answer}
    error_name = "OpenAIError" if has_openai_errors(path) else "Error"
    error_content = {"application/json": {"schema": {"$ref": f"#/components/schemas/{error_name}"}}}
    for status, why in ERRORS.items():
        responses[str(status)] = {"description": why, "content": error_content}
    operation: dict[str, Any] = {
        "summary": entry.summary,
        "parameters": parameters,
        "responses": responses,
    }
    if entry.request is not None:
        content = {"application/json": {"schema": schemas[number, "request"]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


# ------------------------------------------------------------------------------------------------- tasks' answers


def _of_task(task: TaskSpec, use: str) -> Schema:
    """The schema of a task's answer: for one text any shape that options lead to, for several texts a list."""
    shapes: list[Schema] = []
    for options in _variations(task, use):
        try:
            record = task.record(task.options(**options))
        # An option that needs another one.
        except BertcliError:
            continue
        # The shape of a list may depend on its length, as with the masks of a text: with one entry, and with two.
        longer = {name: type_ * 2 if isinstance(type_, list) else type_ for name, type_ in record.items()}
        for variant in (record, longer):
            shape = _schema(task.shape(variant, options))
            if shape not in shapes:
                shapes.append(shape)
    return {"anyOf": [*shapes, {"type": "array", "items": {"anyOf": shapes}}]}


def _variations(task: TaskSpec, use: str) -> Iterator[dict[str, Any]]:
    """Yield options to try: none, and each choice of an option by itself, since a record's fields may depend on it."""
    fixed: dict[str, Any] = {"candidates": ("a",)} if use == "zero-shot" else {}
    yield fixed
    for option in declared(task.options):
        for value in _values_to_try(option.name, option.type):
            yield {**fixed, option.name: value}


def _values_to_try(name: str, hint: Any) -> Iterator[Any]:
    """Yield values of an option: a value of each type that it may have, every word of a choice."""
    for type_ in types_of(hint):
        if type_ is bool:
            yield True
        elif type_ is int:
            yield 2
        elif get_origin(type_) is Literal:
            yield from get_args(type_)
        # Candidates make another use, zero-shot, which has them all the time.
        elif type_ is not NoneType and get_origin(type_) is not None and name != "candidates":
            yield ("a",)


def _schema(type_: Any) -> Schema:
    """The schema of a type as records have it (see TaskSpec)."""
    if isinstance(type_, dict):
        return {
            "type": "object",
            "properties": {name.removesuffix("?"): _schema(inner) for name, inner in type_.items()},
            "required": [name for name in type_ if not name.endswith("?")],
        }
    if isinstance(type_, list):
        entry, *_ = type_
        return {"type": "array", "items": _schema(entry)}
    if isinstance(type_, tuple):
        return {"anyOf": [*map(_schema, type_)]}
    return {"type": JSON_TYPES[type_]}
