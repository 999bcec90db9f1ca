"""The server: what every route has in common, from the bytes of a request to those of its answer."""

import asyncio
import hmac
import json
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route as At
from starlette.types import Scope

from bertcli.errors import BertcliError, damaged
from bertcli.serve import about, pipelines, rankings, tokens, vectors  # noqa: F401 (they declare routes)
from bertcli.serve.door import Door
from bertcli.serve.fields import Refused, is_openai, parsed
from bertcli.serve.served import Served
from bertcli.serve.service import ROUTES, Answer, Ask, Limits, Route, Service
from bertcli.serve.vectors import shortest

TYPES = {401: "authentication_error", 429: "rate_limit_error", 500: "server_error", 503: "server_error"}
HEADERS = {429: {"Retry-After": "1"}, 401: {"WWW-Authenticate": "Bearer"}}
OPTIONS = re.compile(r" \([^()]*--[a-z][^()]*\)|--(?=[a-z])")  # how a message names what is for the command line


class Server(Service):
    """The application `app`, with what all its requests share."""

    def __init__(self, models: Sequence[Served], limits: Limits, ready: Callable[[], None] = lambda: None) -> None:
        """ready: called when requests can be answered."""
        super().__init__(models, limits)
        self._ready = ready
        cors = Middleware(
            CORSMiddleware, allow_origins=limits.cors, allow_methods=["*"], allow_headers=["*"],
            expose_headers=["X-Truncated"],
        )  # fmt: skip
        door = Middleware(Door, hosts=limits.hosts, origins=limits.cors, refusal=self._at_the_door)
        self.app = Starlette(
            routes=[self._at(path, route) for route in ROUTES for path in route.paths],
            middleware=[door, *[cors] * bool(limits.cors)],
            exception_handlers={HTTPException: self._not_here},
            lifespan=self._lifespan,
        )

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self._ready()
        yield
        self.end()

    def _at(self, path: str, route: Route) -> At:
        async def endpoint(request: Request) -> Response:
            ask = Ask(self, request)
            self.metrics.count("te_request_count", path)
            try:
                async with asyncio.timeout(self.limits.timeout):
                    response = await self._response(ask, route)
                self.metrics.count("te_request_success", path)
            except Exception as error:  # whatever goes wrong with one request, the others are answered
                response = self._refusal(path, error)
            self._log(ask, response)
            return response

        return At(path, endpoint, methods=["GET" if route.wanted is None else "POST"])

    async def _response(self, ask: Ask, route: Route) -> Response:
        if not route.free:
            self._check_key(ask.request)
        if route.wanted is None:
            answer = await route.answer(ask)
        else:
            ask.body = {**await self._body(ask.request), **ask.request.path_params}
            answer = await ask.answer(route, ask.body)
        if isinstance(answer, Response):
            return answer
        headers = {"X-Truncated": ",".join(str(cut["index"]) for cut in ask.cuts)} if ask.cuts else None
        if ask.cuts and isinstance(answer, dict):
            answer = {**answer, "truncated": ask.cuts}
        content = await ask.apart(written, answer, tokens=ask.tokens)
        return Response(content, headers=headers, media_type="application/json")

    async def _body(self, request: Request) -> dict[str, Any]:
        """The JSON object of a request. Errors: Refused."""
        if self.draining:
            raise Refused(503, "The server is ending: ask another one.", code="draining")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        if kind != "application/json" or request.headers.get("content-encoding", "identity").lower() != "identity":
            raise Refused(415, "Send application/json, not compressed (Content-Type, Content-Encoding).", code="type")
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > self.limits.max_body * 1_000_000:
                raise Refused(413, f"The body has more than {self.limits.max_body} MB.", code="too_large")
        return parsed(bytes(body))

    def _check_key(self, request: Request) -> None:
        """Refuse a request without the key, if one is asked for."""
        key = self.limits.api_key
        given = request.headers.get("authorization", request.headers.get("x-api-key", ""))
        given = re.sub("^bearer ", "", given, flags=re.IGNORECASE).strip()
        if key is not None and not hmac.compare_digest(given.encode("latin-1"), key.encode()):
            raise Refused(
                401, "The key is missing or wrong (Authorization: Bearer, or x-api-key).", code="unauthorized"
            )

    async def _not_here(self, request: Request, error: Exception) -> Response:
        """The answer for a path or a method that there is none of."""
        response = self._refusal(request.scope["path"], error)
        response.headers.update(getattr(error, "headers", None) or {})
        self._log(Ask(self, request), response)
        return response

    def _at_the_door(self, scope: Scope, error: Exception) -> Response:
        """The answer to a request that no route has seen, or that one has failed to answer."""
        response = self._refusal(scope["path"], error)
        self._log(Ask(self, Request(scope)), response)
        return response

    def _refusal(self, path: str, error: Exception) -> Response:
        """The answer that refuses, as the clients of a route read it."""
        refused = self._refused(path, error)
        self.metrics.count("te_request_failure", refused.code or str(refused.status))
        kind = TYPES.get(refused.status, "invalid_request_error")
        said: Answer = {"error": refused.why, "error_type": refused.code or kind}
        if is_openai(path) and not path.startswith("/api/"):  # Ollama's clients read a sentence
            said = {"error": {"message": refused.why, "type": kind, "param": refused.param, "code": refused.code}}
        return JSONResponse(said, refused.status, HEADERS.get(refused.status))

    def _refused(self, path: str, error: Exception) -> Refused:
        """What a request is told of an error."""
        match error:
            case Refused():
                return error
            case BertcliError() if str(damaged()) in str(error):
                return Refused(500, str(error), code="not_finite")
            case BertcliError():
                return Refused(422, OPTIONS.sub("", str(error)), code="unusable")
            case TimeoutError():
                return Refused(504, f"It was not done within {self.limits.timeout:g} seconds.", code="timeout")
            case ClientDisconnect():
                return Refused(499, "The client has left.", code="gone")
            case HTTPException(status_code=404):
                return Refused(404, "There is no such route; /openapi.json lists them.", code="not_found")
            case HTTPException():
                return Refused(error.status_code, "This route has another method.", code="method_not_allowed")
        self.note(f"{path}: {type(error).__name__}: {error}")
        return Refused(500, "Something went wrong here; the log says what.", code="internal")

    def _log(self, ask: Ask, response: Response) -> None:
        took = monotonic() - ask.begun
        self.metrics.observe("te_request_duration", took)
        if not self.limits.quiet:
            counts = f" {ask.texts} texts {ask.tokens} tokens" if ask.texts else ""
            # Not request.url, which fails for a Host that is no address.
            line = f"{ask.request.method} {ask.request.scope['path']} {response.status_code}{counts}"
            self.note(f"{line} {1000 * took:.1f} ms")


def written(answer: Answer) -> bytes:
    """An answer as JSON. Errors: BertcliError for a number that JSON has not."""
    try:
        text = json.dumps(answer, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=shortest)
    except ValueError:
        raise damaged() from None
    return text.encode()
