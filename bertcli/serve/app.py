"""The server: what every route has in common, from the bytes of a request to those of its answer."""

import asyncio
import hmac
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from time import monotonic, time
from typing import Any
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, PlainTextResponse, Response
from starlette.routing import BaseRoute
from starlette.routing import Route as At

from bertcli._version import __version__
from bertcli.analysis.trace.page import PageOptions, page_of_text
from bertcli.errors import shown
from bertcli.report.terminal import visible
from bertcli.serve.ask import Ask, Limits, Service
from bertcli.serve.fields import Refused, parsed, read
from bertcli.serve.metrics import Metrics
from bertcli.serve.openapi import description
from bertcli.serve.page import people_page
from bertcli.serve.pipelines import PIPELINES, as_pipeline, pipeline_of
from bertcli.serve.routes import ANYTHING, ROUTES, Route, route_at
from bertcli.serve.served import ROUTES as ROUTE_OF
from bertcli.serve.served import Served
from bertcli.serve.stream import Stream
from bertcli.serve.vectors import shortest

PASS_BOUND = 64 << 20  # bytes of the page of a pass
TYPES = {401: "authentication_error", 429: "rate_limit_error", 500: "server_error", 503: "server_error"}
Handler = Callable[[Request, Ask], Awaitable[Response]]


class Server:
    """The application `app`, and whether it is `draining`: it answers what it has accepted, and accepts no more."""

    def __init__(self, models: Sequence[Served], limits: Limits, ready: Callable[[], None] = lambda: None) -> None:
        """ready: called when requests can be answered."""
        self._limits, self._ready = limits, ready
        self.draining = False
        self._begun = int(time())
        metrics = Metrics()

        def batch(size: int, tokens: int) -> None:
            metrics.observe("te_batch_next_size", size)
            metrics.observe("te_batch_next_tokens", tokens)

        self._service = Service(models, limits, Stream(limits.batch_tokens, batch), metrics, self._note)
        cors = Middleware(CORSMiddleware, allow_origins=limits.cors, allow_methods=["*"], allow_headers=["*"])
        self.app = Starlette(
            routes=[*self._routes()],
            middleware=[cors] if limits.cors else [],
            exception_handlers={HTTPException: self._not_here},
            lifespan=self._lifespan,
        )

    def _routes(self) -> list[BaseRoute]:
        def get(path: str, answer: Callable[[Request], Response], free: bool = False) -> At:
            async def handler(request: Request, ask: Ask) -> Response:
                return answer(request)

            return At(path, self._endpoint(handler, free), methods=["GET"])

        posts = [
            At(path, self._endpoint(self._answering(route)), methods=["POST"])
            for route in ROUTES
            for path in route.paths
        ]
        tasks = ("/", "/models/{model:path}/pipeline/{task}", "/pipeline/{task}/{model:path}", "/models/{model:path}")
        return [
            get("/health", lambda request: _json({"status": "ok"}), free=True),
            get("/ready", self._readiness, free=True),
            get("/info", lambda request: _json(self._info())),
            get(
                "/v1/models",
                lambda request: _json({"object": "list", "data": [*map(self._model, self._service.models)]}),
            ),
            get("/v1/models/{model:path}", self._one_model),
            get("/metrics", self._metrics),
            get("/", self._people_page, free=True),
            At("/pass", self._endpoint(self._pass), methods=["GET"]),
            At("/pass/{model:path}", self._endpoint(self._pass), methods=["GET"]),
            get("/openapi.json", lambda request: _json(description())),
            *posts,
            *(At(path, self._endpoint(self._pipeline), methods=["POST"]) for path in tasks),
        ]

    @asynccontextmanager
    async def _lifespan(self, app: Starlette) -> AsyncIterator[None]:
        self._ready()
        yield
        self._service.stream.end()
        self._service.pool.shutdown(cancel_futures=True)

    # ------------------------------------------------------------------------------------------------ every request

    def _endpoint(self, handler: Handler, free: bool = False) -> Callable[[Request], Awaitable[Response]]:
        """What Starlette calls for a route: the handler, with its errors and its line in the log."""

        async def answer(request: Request) -> Response:
            ask = Ask(self._service, request)
            metrics, path = self._service.metrics, str(request.scope["route"].path)
            metrics.count("te_request_count", path)
            try:
                if not free:
                    self._check_key(request)
                response = await handler(request, ask)
                metrics.count("te_request_success", path)
            except Refused as refused:
                metrics.count("te_request_failure", refused.code or str(refused.status))
                response = _refusal(path, refused)
            except Exception as error:  # whatever goes wrong with one request, the others are answered
                metrics.count("te_request_failure", "internal")
                self._note(f"{path}: {type(error).__name__}: {error}")
                response = _refusal(
                    path, Refused(500, "Something went wrong here; the log says what.", code="internal")
                )
            took = monotonic() - ask.begun
            metrics.observe("te_request_duration", took)
            if not self._limits.quiet and not (free and response.status_code == 200):
                counts = f" {ask.texts} texts {ask.tokens} tokens" if ask.texts else ""
                self._note(f"{request.method} {request.url.path} {response.status_code}{counts} {1000 * took:.1f} ms")
            return response

        return answer

    def _answering(self, route: Route) -> Handler:
        async def handler(request: Request, ask: Ask) -> Response:
            body = await self._body(request)
            asked = route
            if "/rerank" in route.paths and "documents" in body:  # Jina's clients ask there, too
                asked = route_at("/v1/rerank")
            return await self._answer(ask, asked, body, body.get("model"))

        return handler

    async def _answer(
        self,
        ask: Ask,
        route: Route,
        body: dict[str, Any],
        name: Any,
        shape: Callable[[Any], Any] = lambda answer: answer,
    ) -> Response:
        wanted = read(route.wanted, body)
        served, use = ask.chosen(route.uses, name if name and isinstance(name, str) else None)
        answer = shape(await route.answer(ask, served, use, wanted))
        headers = {}
        if ask.cuts:
            headers["X-Truncated"] = ",".join(str(cut["index"]) for cut in ask.cuts)
            if isinstance(answer, dict):
                answer = {**answer, "truncated": ask.cuts}
        content = await ask.apart(written, answer, tokens=ask.tokens)
        return Response(content, headers=headers, media_type="application/json")

    async def _pipeline(self, request: Request, ask: Ask) -> Response:
        """What `InferenceClient(model=URL)` asks for: the task is in the path, or follows from request and model."""
        body = await self._body(request)
        name, task = request.path_params.get("model") or body.get("model"), request.path_params.get("task")
        if task is None:
            served, _ = ask.chosen(ANYTHING, name if name and isinstance(name, str) else None)
            named = [name] if isinstance(name, str) else []
            task = pipeline_of(body, served)
            name = served.name if named or task in ("text-classification", "feature-extraction") else None
        if task not in PIPELINES:
            raise Refused(
                404, f"There is no task {shown(task)}; those there are: {', '.join(PIPELINES)}.", code="not_found"
            )
        parameters = body.get("parameters")
        if task == "feature-extraction" and isinstance(parameters, dict):
            body = {**parameters, **body}
        return await self._answer(ask, route_at(PIPELINES[task]), body, name, lambda answer: as_pipeline(task, answer))

    async def _body(self, request: Request) -> dict[str, Any]:
        """The JSON object of a request. Errors: Refused."""
        if self.draining:
            raise Refused(503, "The server is ending: ask another one.", code="draining")
        kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
        encoding = request.headers.get("content-encoding", "identity").lower()
        if kind != "application/json" or encoding != "identity":
            raise Refused(415, "Send application/json, not compressed (Content-Type, Content-Encoding).", code="type")
        most, body = self._limits.max_body * 1_000_000, bytearray()
        try:
            async with asyncio.timeout(self._limits.timeout):
                async for part in request.stream():
                    body += part
                    if len(body) > most:
                        raise Refused(413, f"The body has more than {self._limits.max_body} MB.", code="too_large")
        except TimeoutError:
            raise Refused(
                408, f"The body did not arrive within {self._limits.timeout:g} seconds.", code="slow"
            ) from None
        except ClientDisconnect:
            raise Refused(499, "The client has left.", code="gone") from None
        return parsed(bytes(body))

    def _check_key(self, request: Request) -> None:
        """Refuse a request without the key, if one is asked for."""
        if self._limits.api_key is None:
            return
        given = request.headers.get("authorization", request.headers.get("x-api-key", ""))
        given = given.removeprefix("Bearer ").removeprefix("bearer ").strip()
        if not hmac.compare_digest(given.encode("latin-1"), self._limits.api_key.encode()):
            raise Refused(
                401, "The key is missing or wrong (Authorization: Bearer, or x-api-key).", code="unauthorized"
            )

    async def _not_here(self, request: Request, error: Exception) -> Response:
        """The answer for a path or a method that there is none of."""
        assert isinstance(error, HTTPException)
        words = {404: "There is no such route; /openapi.json lists them.", 405: "This route has another method."}
        refused = Refused(error.status_code, words.get(error.status_code, error.detail), code="not_found")
        self._service.metrics.count("te_request_failure", str(error.status_code))
        if not self._limits.quiet:
            self._note(f"{request.method} {request.url.path} {error.status_code}")
        response = _refusal(request.url.path, refused)
        response.headers.update(error.headers or {})
        return response

    def _note(self, line: str) -> None:
        with suppress(OSError):  # a closed stderr stops nobody
            print(visible(line), file=sys.stderr, flush=True)

    # ---------------------------------------------------------------------------------------------- about the server

    def _readiness(self, request: Request) -> Response:
        return _json({"status": "draining" if self.draining else "ready"}, 503 if self.draining else 200)

    def _metrics(self, request: Request) -> Response:
        return PlainTextResponse(
            self._service.metrics.text(self._service.stream.size), media_type="text/plain; version=0.0.4"
        )

    def _model(self, served: Served) -> dict[str, Any]:
        return {"id": served.name, "object": "model", "created": self._begun, "owned_by": "bertcli"}

    def _one_model(self, request: Request) -> Response:
        name = request.path_params["model"]
        served = next((served for served in self._service.models if served.is_called(name)), None)
        if served is None:
            refused = Refused(404, f"No model {shown(name)} is served; /v1/models lists them.", "model", "not_found")
            return _refusal("/v1/models", refused)
        return _json(self._model(served))

    def _people_page(self, request: Request) -> Response:
        models = [_about(served) for served in self._service.models]
        return HTMLResponse(people_page(models, self._limits.api_key is not None))

    async def _pass(self, request: Request, ask: Ask) -> Response:
        """The pass of `text` through `model` as a page, from which another text can be asked for."""
        given = request.query_params
        served, _ = ask.chosen(ANYTHING, request.path_params.get("model") or given.get("model") or None)
        numbers: dict[str, Any] = {}
        for name in ("layer", "head", "token"):
            try:
                numbers |= {name: int(given[name])} if given.get(name) else {}
            except ValueError:
                raise Refused(422, f"{name} must be a whole number, not {shown(given[name])}.", name) from None
        options = PageOptions(**numbers, bound=PASS_BOUND, ask=f"/pass/{quote(served.name)}")
        text, versus = given.get("text", ""), given.get("versus") or None
        return HTMLResponse(await ask.apart(page_of_text, served.model, text, given.get("pair"), versus, options))

    def _info(self) -> dict[str, Any]:
        limits = self._limits
        shared = {
            "max_concurrent_requests": limits.max_queue_tokens,
            "max_batch_tokens": limits.batch_tokens,
            "max_batch_requests": None,
            "max_client_batch_size": limits.max_inputs,
            "auto_truncate": limits.truncation == "auto",
            "tokenization_workers": 2,
            "version": __version__,
        }
        models = [_about(served) for served in self._service.models]
        return {**{key: models[0][key] for key in _TEI}, **shared, "models": models}


_TEI = ("model_id", "model_sha", "model_dtype", "served_model_name", "model_type", "max_input_length")


def _about(served: Served) -> dict[str, Any]:
    """What `/info` says of a model, with the keys of text-embeddings-inference first."""
    model, own = served.model, served.own
    labels = {str(i): label for i, label in enumerate(model.config.labels)}
    by_labels = {"id2label": labels, "label2id": {label: int(i) for i, label in labels.items()}}
    kinds = {
        "embed": {"embedding": {"pooling": "+".join(own.pooling) or "mean"}},
        "tokens": {"embedding": {"pooling": "none"}}, "late": {"embedding": {"pooling": "none"}},
        "sparse": {"embedding": {"pooling": "splade"}}, "rank": {"reranker": by_labels},
        "classify": {"classifier": by_labels},
    }  # fmt: skip
    precision = model.engine.precision if model.engine.name == "onnx" else "float32"
    path = model.path
    commit = path.name if path is not None and path.parent.name == "snapshots" else None
    about: dict[str, Any] = {
        "model_id": served.name,
        "model_sha": commit,
        "model_dtype": precision,
        "served_model_name": served.name,
        "model_type": kinds.get(served.uses[0], {served.uses[0]: {}}),
        "max_input_length": served.limit,
    }
    width = served.width
    return {
        **about,
        "uses": [*served.uses],
        "routes": list(dict.fromkeys(ROUTE_OF[use] for use in served.uses)),
        "pooling": [*own.pooling],
        "prompts": dict(own.prompts),
        "dimensions": width,
    }


def written(answer: Any) -> bytes:
    """An answer as JSON. Errors: Refused for a number that JSON has not."""
    try:
        text = json.dumps(answer, ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=shortest)
    except ValueError:
        raise Refused(500, "A result is not finite: the weights are damaged.", code="not_finite") from None
    return text.encode()


def _json(answer: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(written(answer), status, headers, "application/json")


def _refusal(path: str, refused: Refused) -> Response:
    """The answer that refuses, as the clients of a route read it."""
    kind = TYPES.get(refused.status, "invalid_request_error")
    headers = {429: {"Retry-After": "1"}, 401: {"WWW-Authenticate": "Bearer"}}.get(refused.status)
    if path.startswith(("/v1/", "/v2/", "/embeddings")):
        error = {"message": refused.why, "type": kind, "param": refused.param, "code": refused.code}
        return _json({"error": error}, refused.status, headers)
    return _json({"error": refused.why, "error_type": refused.code or kind}, refused.status, headers)
