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
from bertcli.serve.exchange import Exchange
from bertcli.serve.requests import Schema
from bertcli.serve.routes import ROUTES, Route, has_openai_errors, route
from bertcli.tasks.options import declared, kinds_of
from bertcli.tasks.registry import TaskSpec

ERRORS = {
    400: "The body is no JSON, or has no text.", 401: "The key is missing or wrong.",
    403: "A page of another origin asks.", 404: "There is no such route, or no such model.",
    405: "The route has another method.", 413: "The body is too large.", 415: "The body is not application/json.",
    421: "The host is not this server.", 422: "A field is wrong, does not fit, or asks for too much.",
    429: "Too much is waiting; Retry-After says when to ask again.", 500: "The model is damaged, or something failed.",
    503: "The server is ending.", 504: "It took too long.",
}  # fmt: skip
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
                "message": {"type": "string"}, "type": {"type": "string"}, "param": STRING_OR_NULL,
                "code": STRING_OR_NULL,
            },
            "required": ["message", "type", "param", "code"],
        }
    },
    "required": ["error"],
}  # fmt: skip


@route("/openapi.json")
async def description(exchange: Exchange) -> dict[str, Any]:
    """The server as OpenAPI 3.1 has it."""
    exchange.predictions += len(ROUTES) * 100  # of a few kilobytes each
    return await exchange.in_thread(described)


@cache
def described() -> dict[str, Any]:
    """The whole description as JSON."""
    schemas, components = _schemas()
    components |= {"Error": ERROR, "OpenAIError": OPENAI_ERROR}
    paths: dict[str, Any] = {}
    for number, one in enumerate(ROUTES):
        for path in one.paths:
            at = paths.setdefault(path.replace(":path", ""), {})
            at["get" if one.request is None else "post"] = _operation(one, path, number, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "bertcli", "version": __version__},
        "paths": paths,
        "components": {"schemas": components},
    }


Key = tuple[int, Literal["request", "response"]]


def _schemas() -> tuple[dict[Key, Schema], dict[str, Schema]]:
    """The schema of each route's request and answer, and those that they refer to."""
    asked: list[Any] = []
    for number, one in enumerate(ROUTES):
        if one.request is not None:
            asked.append(((number, "request"), "validation", TypeAdapter(one.request)))
        if _has_type(one.response):
            asked.append(((number, "response"), "serialization", TypeAdapter(one.response)))
    made, shared = TypeAdapter.json_schemas(asked, ref_template="#/components/schemas/{model}")
    schemas: dict[Key, Any] = {key: schema for (key, _), schema in made.items()}
    for number, one in enumerate(ROUTES):
        if isinstance(one.response, TaskSpec):
            schemas[number, "response"] = _of_task(one.response, one.uses[0])
    return schemas, dict(shared.get("$defs", {}))


def _has_type(response: Any) -> bool:
    """True if an answer is JSON with a declared type; a task's records are described from its spec instead."""
    if isinstance(response, TaskSpec):
        return False
    return response is not Any and not (isinstance(response, type) and issubclass(response, Response))


def _operation(one: Route, path: str, number: int, schemas: Mapping[Key, Schema]) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)", path)
    ]
    answer: dict[str, Any] = {"description": "The answer; X-Truncated lists the texts that were cut."}
    if (number, "response") in schemas or not isinstance(one.response, type):
        answer["content"] = {"application/json": {"schema": schemas.get((number, "response"), {})}}
    refers = {"$ref": f"#/components/schemas/{'OpenAIError' if has_openai_errors(path) else 'Error'}"}
    errors = {
        str(status): {"description": why, "content": {"application/json": {"schema": refers}}}
        for status, why in ERRORS.items()
    }
    made = {"summary": one.summary, "parameters": parameters, "responses": {"200": answer, **errors}}
    if one.request is None:
        return made
    body = {"application/json": {"schema": schemas[number, "request"]}}
    return {**made, "requestBody": {"required": True, "content": body}}


# ------------------------------------------------------------------------------------------------- tasks' answers


def _of_task(task: TaskSpec, use: str) -> Schema:
    """The schema of a task's answer: for one text any of the shapes that options lead to, for several a list."""
    shapes: list[Schema] = []
    for options in _variations(task, use):
        try:
            record = task.record(task.options(**options))
        except BertcliError:  # an option that needs another one
            continue
        # What is given may depend on how many there are, as with masks: lists hold one, or two.
        several = {name: kind * 2 if isinstance(kind, list) else kind for name, kind in record.items()}
        for one in (record, several):
            shape = _schema(task.shape(one, options))
            if shape not in shapes:
                shapes.append(shape)
    return {"anyOf": [*shapes, {"type": "array", "items": {"anyOf": shapes}}]}


def _variations(task: TaskSpec, use: str) -> Iterator[dict[str, Any]]:
    """Yield options to try: none, and each choice of an option by itself, since a record's fields may depend on it."""
    fixed: dict[str, Any] = {"candidates": ("a",)} if use == "zero-shot" else {}
    yield fixed
    for item in declared(task.options):
        for kind in kinds_of(item.type):
            if kind is bool:
                yield {**fixed, item.name: True}
            elif get_origin(kind) is Literal:
                yield from ({**fixed, item.name: word} for word in get_args(kind))
            elif kind is int:
                yield {**fixed, item.name: 2}
            elif kind is not NoneType and get_origin(kind) is not None and item.name not in ("candidates", *fixed):
                yield {**fixed, item.name: ("a",)}


def _schema(kind: Any) -> Schema:
    """The schema of a type as records have it (see TaskSpec)."""
    if isinstance(kind, dict):
        return {
            "type": "object",
            "properties": {name.removesuffix("?"): _schema(one) for name, one in kind.items()},
            "required": [name for name in kind if not name.endswith("?")],
        }
    if isinstance(kind, list):
        return {"type": "array", "items": _schema(kind[0])}
    if isinstance(kind, tuple):
        return {"anyOf": [*map(_schema, kind)]}
    return {"type": JSON_TYPES[kind]}
