"""The application: key, body, timeout, errors and log of every request.

It has no routes of its own: they are in `api/`, a file for each API.
"""

import asyncio
import hmac
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
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.types import Scope

from bertcli.engine.pauses import Abandoned
from bertcli.errors import BertcliError, NotFinite, number_of, quoted
from bertcli.tasks.limits import TooMuch
from bertcli.wings.serve.answers import CHUNK, Answer, LongResponse, written
from bertcli.wings.serve.connections import Connections, most_connections
from bertcli.wings.serve.exchange import Exchange, busy
from bertcli.wings.serve.host_and_origin import HostAndOrigin
from bertcli.wings.serve.requests import LONG_BODY, Refusal, parse_json
from bertcli.wings.serve.routes import Route, all_routes, has_openai_errors
from bertcli.wings.serve.served_model import Served
from bertcli.wings.serve.service import BODIES_HELD, Limits, Service

# OpenAI's types of errors, by status; others are invalid_request_error.
ERROR_TYPES = {
    401: "authentication_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "server_error",
}
# Errors of the event loop in the log, each once.
MOST_ERRORS_LOGGED = 100
# Characters of the header X-Truncated: proxies take heads of 4,096 bytes.
LONGEST_HEADER = 1000
# Characters of a path in the log.
LOGGED_PATH = 200
SHUTTING_DOWN = Refusal(503, "The server is shutting down: send the request again later.", code="draining")
# In messages that are written for the command line: "(--option …)", and other options.
COMMAND_LINE_OPTIONS = re.compile(r" \([^()]*--[a-z][^()]*\)|--([a-z][a-z-]*)")


def _as_field(option: re.Match[str]) -> str:
    """The name that an option of the command line has in a request; of one in brackets nothing."""
    return (option[1] or "").replace("-", "_")


def joined(chunks: list[bytes]) -> bytes:
    """Join the chunks of a body, and free them, so that a long body is not in memory twice."""
    body = b"".join(chunks)
    chunks.clear()
    return body


def in_header(indices: Sequence[int]) -> str:
    """List numbers with commas for a header, and "..." in place of those that it has no room for."""
    text = ",".join(map(str, indices))
    if len(text) <= LONGEST_HEADER:
        return text
    return f"{text[:LONGEST_HEADER].rpartition(',')[0]},..."


class Server(Service):
    """The application (`app`), with the state that its requests share (`Service`)."""

    def __init__(self, models: Sequence[Served], limits: Limits, ready: Callable[[], None] = lambda: None) -> None:
        """ready: called when requests can be answered."""
        super().__init__(models, limits)
        self._ready = ready
        # Of the requests that are being answered.
        self._deadlines: set[asyncio.Timeout] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = False
        self.connections = Connections(most_connections(), limits.timeout)
        # Errors of the event loop that the log has.
        self._logged: set[str] = set()
        checked = Middleware(HostAndOrigin, hosts=limits.hosts, origins=limits.cors, refusal=self._outside_of_a_route)
        middleware = [checked]
        if limits.cors:
            cors = Middleware(
                CORSMiddleware,
                allow_origins=limits.cors,
                allow_methods=["*"],
                allow_headers=["*"],
                expose_headers=["X-Truncated"],
            )
            middleware.append(cors)
        self.app = Starlette(
            routes=[self._endpoint(path, route) for route in all_routes() for path in route.paths],
            middleware=middleware,
            exception_handlers={HTTPException: self._no_route},
            lifespan=self._lifespan,
        )

    def abort(self) -> None:
        """Answer every unfinished request with 503. Called from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._end_all)

    def drain(self) -> None:
        """Accept no more requests, and no more connections that wait. Called from any thread."""
        self.draining = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self.connections.end)

    def _log_once(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Write an error of the event loop to the log, the first time: a client may cause thousands in a second."""
        message = f"{context.get('message')}: {context.get('exception')}"
        if message not in self._logged and len(self._logged) < MOST_ERRORS_LOGGED:
            self._logged.add(message)
            self.note(message)

    def _end_all(self) -> None:
        self._ended = True
        for deadline in self._deadlines:
            deadline.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        self._loop.set_exception_handler(self._log_once)
        self._ready()
        yield
        self.end()

    def _endpoint(self, path: str, route: Route) -> StarletteRoute:
        async def endpoint(request: Request) -> Response:
            exchange = Exchange(self, request)
            self.metrics.count("te_request_count", path)
            try:
                response = await self._in_time(exchange, route)
                self.metrics.count("te_request_success", path)
            # Whatever goes wrong with one request, the others are answered.
            except Exception as error:
                response = self._refusal(path, error)
            finally:
                self.bytes_held -= exchange.bytes_held
                exchange.end()
            self._log(exchange, response)
            return response

        method = "GET" if route.request is None else "POST"
        return StarletteRoute(path, endpoint, methods=[method])

    async def _in_time(self, exchange: Exchange, route: Route) -> Response:
        """Answer a request within the timeout. Errors: TimeoutError, also at the server's end."""
        async with asyncio.timeout(self.limits.timeout) as deadline:
            self._deadlines.add(deadline)
            try:
                return await self._response(exchange, route)
            finally:
                self._deadlines.discard(deadline)

    async def _response(self, exchange: Exchange, route: Route) -> Response:
        if not route.public:
            self._check_key(exchange.request)
        if route.request is None:
            answer = await route.answer(exchange)
        else:
            answer = await self._posted(exchange, route)
        if isinstance(answer, Response):
            return answer
        headers: dict[str, str] = {}
        cuts = exchange.cuts
        if cuts:
            headers["X-Truncated"] = in_header([cut["index"] for cut in cuts])
            if isinstance(answer, dict):
                answer = {**answer, "truncated": cuts}
        content = await exchange.in_thread(written, answer, unless=exchange.is_short)
        response_type = Response if len(content) <= CHUNK else LongResponse
        return response_type(content, headers=headers, media_type="application/json")

    async def _posted(self, exchange: Exchange, route: Route) -> Answer:
        """Read the body of a POST, and call its route."""
        chunks = await self._body(exchange)
        short = sum(map(len, chunks)) <= LONG_BODY
        body = await exchange.in_thread(lambda: parse_json(joined(chunks)), unless=short)
        exchange.body = {**body, **exchange.request.path_params}
        return await exchange.answer(route, exchange.body, short=short)

    async def _body(self, exchange: Exchange) -> list[bytes]:
        """Read the bytes of a request's body, in chunks. Errors: Refusal."""
        if self.draining:
            raise SHUTTING_DOWN
        headers = exchange.request.headers
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        encoding = headers.get("content-encoding", "identity").lower()
        # curl says that it sends a form. Of a page another type needs no leave of this server (CORS).
        is_of_a_page = "origin" in headers or "sec-fetch-site" in headers
        if encoding != "identity" or (is_of_a_page and media_type != "application/json"):
            why = "The body must be JSON, not compressed: send Content-Type: application/json, no Content-Encoding."
            raise Refusal(415, why, code="type")
        most = self.limits.max_body * 1_000_000
        chunks: list[bytes] = []
        async for chunk in exchange.request.stream():
            chunks.append(chunk)
            exchange.bytes_held += len(chunk)
            self.bytes_held += len(chunk)
            if exchange.bytes_held > most:
                why = f"The body has more than {self.limits.max_body} MB: send fewer texts at once."
                raise Refusal(413, why, code="too_large")
            if self.bytes_held > BODIES_HELD * most:
                raise busy(1)
        return chunks

    def _check_key(self, request: Request) -> None:
        """Refuse a request without the key, if the server has one. Errors: Refusal."""
        key = self.limits.api_key
        if key is None:
            return
        given = request.headers.get("authorization", request.headers.get("x-api-key", ""))
        given = re.sub("^bearer ", "", given, flags=re.IGNORECASE).strip()
        # In a time that does not depend on how many characters are right.
        if not hmac.compare_digest(given.encode("latin-1"), key.encode()):
            why = "The API key is missing or wrong: send the header Authorization: Bearer KEY, or x-api-key: KEY."
            raise Refusal(401, why, code="unauthorized")

    # ----------------------------------------------------------------------------------------------------------- errors

    async def _no_route(self, request: Request, error: Exception) -> Response:
        """The error answer for a path that does not exist, or a method that the path does not take."""
        response = self._refusal(request.scope["path"], error)
        response.headers.update(getattr(error, "headers", None) or {})
        self._log(Exchange(self, request), response)
        return response

    def _outside_of_a_route(self, scope: Scope, error: Exception) -> Response:
        """The error answer to a request with a wrong Host or Origin, or that failed outside of a route."""
        response = self._refusal(scope["path"], error)
        self._log(Exchange(self, Request(scope)), response)
        return response

    def _refusal(self, path: str, error: Exception) -> Response:
        """Write an error as an answer, in the shape of OpenAI or of text-embeddings-inference."""
        refused = self._refused(path, error)
        self.metrics.count("te_request_failure", refused.code or str(refused.status))
        error_type = ERROR_TYPES.get(refused.status, "invalid_request_error")
        answer: Answer = {"error": refused.why, "error_type": refused.code or error_type}
        if has_openai_errors(path):
            described = {
                "message": refused.why,
                "type": error_type,
                "param": refused.param,
                "code": refused.code,
            }
            answer = {"error": described}
        headers = refused.headers
        if refused.status == 401:
            headers = {**headers, "WWW-Authenticate": "Bearer"}
        return Response(written(answer), refused.status, headers, "application/json")

    def _refused(self, path: str, error: Exception) -> Refusal:
        """Make a refusal of any error: status, message, code."""
        match error:
            case Refusal():
                return error
            case TooMuch():
                return Refusal(422, str(error), code=error.code)
            case NotFinite():
                return Refusal(500, self._without_paths(str(error)), code="not_finite")
            case BertcliError():
                why = COMMAND_LINE_OPTIONS.sub(_as_field, self._without_paths(str(error)))
                return Refusal(422, why, code="unusable")
            case TimeoutError() if self._ended:
                return SHUTTING_DOWN
            case TimeoutError():
                why = f"The request was not done within {self.limits.timeout:g} seconds"
                return Refusal(504, f"{why}: send fewer or shorter texts at once.", code="timeout")
            case ClientDisconnect() | Abandoned():
                return Refusal(499, "The client has closed the connection.", code="gone")
            case HTTPException(status_code=404):
                why = f"There is no route {quoted(path)}: GET /openapi.json lists the routes."
                return Refusal(404, why, code="not_found")
            case HTTPException():
                allowed = (error.headers or {}).get("Allow", "another method")
                why = f"The route {quoted(path)} does not take this method: use {allowed}."
                return Refusal(error.status_code, why, code="method_not_allowed")
        self.note(f"{path}: {type(error).__name__}: {error}")
        return Refusal(500, "The server failed on this request: its log has the error.", code="internal")

    def _without_paths(self, message: str) -> str:
        """A message with the models' public names in place of their folders."""
        for served in self.models:
            for path in {str(served.model.path), served.model.name} - {served.short}:
                message = message.replace(path, served.name)
        return message

    def _log(self, exchange: Exchange, response: Response) -> None:
        """Count a request's time, and write its line in the log."""
        seconds = monotonic() - exchange.begun
        self.metrics.observe("te_request_duration", seconds)
        if self.limits.quiet:
            return
        counts = ""
        if exchange.texts:
            counts = f" {number_of(exchange.texts, 'text')} {number_of(exchange.tokens, 'token')}"
        # Not request.url, which fails for a Host that is not an address.
        path = exchange.request.scope["path"][:LOGGED_PATH]
        self.note(f"{exchange.request.method} {path} {response.status_code}{counts} {1000 * seconds:.1f} ms")
