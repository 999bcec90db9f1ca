"""The application: key, body, timeout, errors and log of every request.

The routes are in `api/`, a file for each API.
"""

import asyncio
import hmac
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from time import monotonic

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route as StarletteRoute
from starlette.types import Scope

from bertcli.errors import BertcliError, damaged, number_of
from bertcli.serve.answers import CHUNK, Answer, LongResponse, written
from bertcli.serve.door import Door
from bertcli.serve.exchange import Exchange, busy
from bertcli.serve.requests import LONG_BODY, Refusal, parse_json
from bertcli.serve.routes import Route, all_routes, has_openai_errors
from bertcli.serve.served import Served
from bertcli.serve.service import BODIES_HELD, Limits, Service
from bertcli.serve.stream import Abandoned

TYPES = {401: "authentication_error", 429: "rate_limit_error", 500: "server_error", 503: "server_error"}
ENDING = Refusal(503, "The server is ending: ask another one.", code="draining")
# Share of the timeout for which what is being computed at its end may take longer: all of its work is done by then.
GRACE = 0.2
SECONDS_BETWEEN_LOOKS = 0.02
OPTIONS = re.compile(r" \([^()]*--[a-z][^()]*\)|--(?=[a-z])")  # how a message names what is for the command line


def joined(chunks: list[bytes]) -> bytes:
    """Join the chunks of a body, and forget them: a long body would be there twice."""
    body = b"".join(chunks)
    chunks.clear()
    return body


class Server(Service):
    """The application (`app`) and the state that its requests share (`service`)."""

    def __init__(self, models: Sequence[Served], limits: Limits, ready: Callable[[], None] = lambda: None) -> None:
        """ready: called when requests can be answered."""
        super().__init__(models, limits)
        self._ready = ready
        self._deadlines: set[asyncio.Timeout] = set()  # of the requests that are being answered
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ended = False
        cors = Middleware(
            CORSMiddleware, allow_origins=limits.cors, allow_methods=["*"], allow_headers=["*"],
            expose_headers=["X-Truncated"],
        )  # fmt: skip
        door = Middleware(Door, hosts=limits.hosts, origins=limits.cors, refusal=self._at_the_door)
        self.app = Starlette(
            routes=[self._at(path, route) for route in all_routes() for path in route.paths],
            middleware=[door, *[cors] * bool(limits.cors)],
            exception_handlers={HTTPException: self._no_route},
            lifespan=self._lifespan,
        )

    def abort(self) -> None:
        """Answer what is not done with 503. Called from any thread."""
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._end_all)

    def _end_all(self) -> None:
        self._ended = True
        for deadline in self._deadlines:
            deadline.reschedule(asyncio.get_running_loop().time())

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self._loop = asyncio.get_running_loop()
        self._ready()
        yield
        self.end()

    def _at(self, path: str, route: Route) -> StarletteRoute:
        async def endpoint(request: Request) -> Response:
            exchange = Exchange(self, request)
            self.metrics.count("te_request_count", path)
            try:
                response = await self._in_time(exchange, route)
                self.metrics.count("te_request_success", path)
            except Exception as error:  # whatever goes wrong with one request, the others are answered
                response = self._refusal(path, error)
            finally:
                self.bytes_held -= exchange.bytes_held
                exchange.end()
            self._log(exchange, response)
            return response

        return StarletteRoute(path, endpoint, methods=["GET" if route.request is None else "POST"])

    async def _in_time(self, exchange: Exchange, route: Route) -> Response:
        """The answer to a request within the timeout, or a little later if it is being computed then.

        Errors: TimeoutError; Busy for a request that nothing was computed for.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + self.limits.timeout
        try:
            async with asyncio.timeout(None) as deadline:
                timer = loop.call_at(end, self._expire, exchange, deadline, end)
                self._deadlines.add(deadline)
                try:
                    return await self._response(exchange, route)
                finally:
                    timer.cancel()
                    self._deadlines.discard(deadline)
        except TimeoutError:
            if not self._ended:
                exchange.check_begun()
            raise

    def _expire(self, exchange: Exchange, deadline: asyncio.Timeout, end: float) -> None:
        """End a request whose time is over; one that is being computed has some more time."""
        if deadline not in self._deadlines:  # it has been answered
            return
        loop = asyncio.get_running_loop()
        more = GRACE * self.limits.timeout if exchange.is_nearly_done else 0.0
        if loop.time() < end + more:
            loop.call_later(SECONDS_BETWEEN_LOOKS, self._expire, exchange, deadline, end)
        else:
            deadline.reschedule(loop.time())

    async def _response(self, exchange: Exchange, route: Route) -> Response:
        if not route.public:
            self._check_key(exchange.request)
        if route.request is None:
            answer = await route.answer(exchange)
        else:
            chunks = await self._body(exchange)
            long = sum(map(len, chunks)) > LONG_BODY
            body = await exchange.in_thread(lambda: parse_json(joined(chunks), self.limits.max_values), whether=long)
            exchange.body = {**body, **exchange.request.path_params}
            exchange.keep(body, exchange.body)
            del body
            answer = await exchange.answer(route, exchange.body, in_thread=long)
        if isinstance(answer, Response):
            return answer
        cuts = exchange.cuts
        headers = {"X-Truncated": ",".join(str(cut["index"]) for cut in cuts)} if cuts else None
        if cuts and isinstance(answer, dict):
            answer = {**answer, "truncated": cuts}
        exchange.keep(answer)
        content = await exchange.in_thread(written, answer, whether=not exchange.is_short)
        made = Response if len(content) <= CHUNK else LongResponse
        return made(content, headers=headers, media_type="application/json")

    async def _body(self, exchange: Exchange) -> list[bytes]:
        """The bytes of a request's body, in chunks. Errors: Refused."""
        if self.draining:
            raise ENDING
        headers = exchange.request.headers
        media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        if media_type != "application/json" or headers.get("content-encoding", "identity").lower() != "identity":
            raise Refusal(415, "Send application/json, not compressed (Content-Type, Content-Encoding).", code="type")
        most = self.limits.max_body * 1_000_000
        chunks: list[bytes] = []
        async for chunk in exchange.request.stream():
            chunks.append(chunk)
            exchange.bytes_held += len(chunk)
            self.bytes_held += len(chunk)
            if exchange.bytes_held > most:
                raise Refusal(413, f"The body has more than {self.limits.max_body} MB.", code="too_large")
            if self.bytes_held > BODIES_HELD * most:
                raise busy(1)
        return chunks

    def _check_key(self, request: Request) -> None:
        """Refuse a request without the key, if one is asked for."""
        key = self.limits.api_key
        given = request.headers.get("authorization", request.headers.get("x-api-key", ""))
        given = re.sub("^bearer ", "", given, flags=re.IGNORECASE).strip()
        if key is not None and not hmac.compare_digest(given.encode("latin-1"), key.encode()):
            raise Refusal(
                401, "The key is missing or wrong (Authorization: Bearer, or x-api-key).", code="unauthorized"
            )

    # ----------------------------------------------------------------------------------------------- what is refused

    async def _no_route(self, request: Request, error: Exception) -> Response:
        """The answer for a path or a method that there is none of."""
        response = self._refusal(request.scope["path"], error)
        response.headers.update(getattr(error, "headers", None) or {})
        self._log(Exchange(self, request), response)
        return response

    def _at_the_door(self, scope: Scope, error: Exception) -> Response:
        """The error answer to a request that reached no route, or whose route raised."""
        response = self._refusal(scope["path"], error)
        self._log(Exchange(self, Request(scope)), response)
        return response

    def _refusal(self, path: str, error: Exception) -> Response:
        """The error as the answer that a route's clients can read: OpenAI's shape, or that of TEI."""
        refused = self._refused(path, error)
        self.metrics.count("te_request_failure", refused.code or str(refused.status))
        kind = TYPES.get(refused.status, "invalid_request_error")
        answer: Answer = {"error": refused.why, "error_type": refused.code or kind}
        if has_openai_errors(path):
            answer = {"error": {"message": refused.why, "type": kind, "param": refused.param, "code": refused.code}}
        headers = {**refused.headers, **({"WWW-Authenticate": "Bearer"} if refused.status == 401 else {})}
        return Response(written(answer), refused.status, headers, "application/json")

    def _refused(self, path: str, error: Exception) -> Refusal:
        """The refusal for an error: status, message, word for programs."""
        match error:
            case Refusal():
                return error
            case BertcliError() if str(damaged()) in str(error):
                return Refusal(500, str(error), code="not_finite")
            case BertcliError():
                return Refusal(422, OPTIONS.sub("", str(error)), code="unusable")
            case TimeoutError():
                why = f"It was not done within {self.limits.timeout:g} seconds."
                return ENDING if self._ended else Refusal(504, why, code="timeout")
            case ClientDisconnect() | Abandoned():
                return Refusal(499, "The client has left.", code="gone")
            case HTTPException(status_code=404):
                return Refusal(404, "There is no such route; /openapi.json lists them.", code="not_found")
            case HTTPException():
                return Refusal(error.status_code, "This route has another method.", code="method_not_allowed")
        self.note(f"{path}: {type(error).__name__}: {error}")
        return Refusal(500, "Something went wrong here; the log says what.", code="internal")

    def _log(self, exchange: Exchange, response: Response) -> None:
        took = monotonic() - exchange.begun
        self.metrics.observe("te_request_duration", took)
        if not self.limits.quiet:
            texts, tokens = number_of(exchange.texts, "text"), number_of(exchange.tokens, "token")
            counts = f" {texts} {tokens}" if exchange.texts else ""
            # Not request.url, which fails for a Host that is no address.
            path = exchange.request.scope["path"]
            self.note(f"{exchange.request.method} {path} {response.status_code}{counts} {1000 * took:.1f} ms")
