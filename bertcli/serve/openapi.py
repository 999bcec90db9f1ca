"""The server described for programs, as OpenAPI 3.1 has it: from the routes themselves."""

from typing import Any

from bertcli._version import __version__
from bertcli.serve.fields import schema
from bertcli.serve.routes import ROUTES

ERRORS = {
    400: "The body is no JSON, or has no text.", 401: "The key is missing or wrong.", 408: "The body came too slowly.",
    413: "The body is too large.", 415: "The body is not application/json.", 422: "A field is wrong, or does not fit.",
    429: "Too much is waiting; Retry-After says when to ask again.", 500: "The model is damaged, or something failed.",
    503: "The server is ending.", 504: "It took too long.",
}  # fmt: skip
GETS = {
    "/": "A page to try the models on.", "/pass": "The pass of ?text= through ?model= as a page.",
    "/pass/{model}": "The same.", "/health": "Whether the process can answer.",
    "/ready": "Whether it accepts requests.",
    "/info": "Models, limits, version.", "/v1/models": "The models, as OpenAI lists them.",
    "/v1/models/{model}": "One of them.", "/metrics": "Counts and times, for Prometheus.",
    "/openapi.json": "This description.",
}  # fmt: skip


def description() -> dict[str, Any]:
    """The whole document."""
    errors = {str(status): {"description": why} for status, why in ERRORS.items()}
    paths: dict[str, Any] = {
        path: {"get": {"summary": summary, "responses": {"200": {"description": "The answer."}}}}
        for path, summary in GETS.items()
    }
    for route in ROUTES:
        body = {"required": True, "content": {"application/json": {"schema": schema(route.wanted)}}}
        answer = {"description": "The answer; X-Truncated lists the texts that were cut."}
        post = {"summary": route.summary, "requestBody": body, "responses": {"200": answer, **errors}}
        paths |= {path: {"post": post} for path in route.paths}
    return {"openapi": "3.1.0", "info": {"title": "bertcli", "version": __version__}, "paths": paths}
