"""What the server says of itself: routes that take nothing."""

import re
from dataclasses import MISSING
from html import unescape
from importlib.resources import files
from typing import Any
from urllib.parse import quote

from starlette.responses import HTMLResponse, JSONResponse, PlainTextResponse, Response

from bertcli._version import __version__
from bertcli.analysis.trace.page import PageOptions, page_of_text
from bertcli.errors import shown
from bertcli.report.page import Markup, page
from bertcli.serve.fields import Refused, is_openai, properties
from bertcli.serve.pipelines import parameters_of
from bertcli.serve.rankings import RANKERS
from bertcli.serve.served import Served
from bertcli.serve.service import ROUTES, Answer, Ask, Route, paths_for, route
from bertcli.tasks.options import declared

PASS_BOUND = 64 << 20  # bytes of the page of a pass
TEI = ("model_id", "model_sha", "model_dtype", "served_model_name", "model_type", "max_input_length")  # of a model


@route("/health", free=True)
async def health(ask: Ask) -> Answer:
    """Whether the process can answer."""
    return {"status": "ok"}


@route("/ready", free=True)
async def ready(ask: Ask) -> Answer:
    """Whether it accepts requests."""
    draining = ask.service.draining
    return JSONResponse({"status": "draining" if draining else "ready"}, 503 if draining else 200)


@route("/info")
async def info(ask: Ask) -> Answer:
    """Models, limits, version."""
    limits, models = ask.service.limits, [*map(about, ask.service.models)]
    shared = {
        "max_concurrent_requests": limits.max_queue_tokens, "max_batch_tokens": limits.batch_tokens,
        "max_batch_requests": None, "max_client_batch_size": limits.max_inputs,
        "auto_truncate": limits.truncation == "auto", "tokenization_workers": 2, "version": __version__,
    }  # fmt: skip
    return {**{key: models[0][key] for key in TEI}, **shared, "models": models}


def about(served: Served) -> dict[str, Any]:
    """What `/info` says of a model, with the keys of text-embeddings-inference first."""
    model, own, use = served.model, served.own, served.uses[0]
    labels = {str(i): label for i, label in enumerate(model.config.labels)}
    by_labels = {"id2label": labels, "label2id": {label: int(i) for i, label in labels.items()}}
    pooling = {"encode": "+".join(own.pooling_or_default), "late": "none", "encode-sparse": "splade"}
    kind = {"rank": "reranker", "classify": "classifier"}.get(use, use)
    path = model.path
    return {
        "model_id": served.name,
        "model_sha": path.name if path is not None and path.parent.name == "snapshots" else None,
        "model_dtype": model.engine.precision,
        "served_model_name": served.name,
        "model_type": {"embedding": {"pooling": pooling[use]}} if use in pooling else {kind: by_labels},
        "max_input_length": served.plan("encode", pooling="mean").limit,
        "uses": [*served.uses],
        "routes": paths_for(served),
        "ranks_by": next((how for ranker, how in RANKERS.items() if ranker in served.uses), None),
        "pooling": [*own.pooling],
        "prompts": dict(own.prompts),
        "dimensions": served.width,
    }


@route("/v1/models")
async def models(ask: Ask) -> Answer:
    """The models, as OpenAI lists them."""
    return {"object": "list", "data": [_listed(ask, served) for served in ask.service.models]}


@route("/v1/models/{model:path}")
async def one_model(ask: Ask) -> Answer:
    """One of them."""
    name = ask.request.path_params["model"]
    for served in ask.service.models:
        if served.is_called(name):
            return _listed(ask, served)
    raise Refused(404, f"No model {shown(name)} is served; /v1/models lists them.", "model", "not_found")


def _listed(ask: Ask, served: Served) -> dict[str, Any]:
    return {"id": served.name, "object": "model", "created": ask.service.begun, "owned_by": "bertcli"}


@route("/metrics")
async def metrics(ask: Ask) -> Answer:
    """Counts and times, for Prometheus."""
    text = ask.service.metrics.text(ask.service.stream.size)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


@route("/pass", "/pass/{model:path}")
async def pass_page(ask: Ask) -> Answer:
    """The pass of `text` through `model` as a page, from which another text can be asked for."""
    given = {name: value for name, value in ask.request.query_params.items() if value}
    served, _ = ask.service.chosen((), ask.request.path_params.get("model") or given.get("model"))
    numbers: dict[str, Any] = {}
    for name in given.keys() & {"layer", "head", "token"}:
        if not given[name].removeprefix("-").isdecimal():
            raise Refused(422, f"{name} must be a whole number, not {shown(given[name])}.", name, "wrong_shape")
        numbers[name] = int(given[name])
    options = PageOptions(**numbers, bound=PASS_BOUND, ask=f"/pass/{quote(served.name)}")
    texts = given.get("text", ""), given.get("pair"), given.get("versus")
    async with ask.service.drawing:
        return drawn(await ask.apart(page_of_text, served.model, *texts, options))


LEAD = (
    "What these models make of your own words. Everything is computed on this server; below the result stands how to "
    "ask for it from a program."
)


@route("/", free=True)
async def people_page(ask: Ask) -> Answer:
    """A box to type into, and what the models do with it: what `page.js` does."""
    folder, keyed = files("bertcli.serve"), ask.service.limits.api_key is not None
    body, style, script = (folder.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("html", "css", "js"))
    # With a key nothing is said of the models: the script asks /info for them with the key that is typed in.
    models = [] if keyed else [{"model_id": one.name, "uses": [*one.uses]} for one in ask.service.models]
    data = {"models": models, "keyed": keyed}
    return drawn(page("bertcli", Markup(body), lead=LEAD, style=style, script=script, data=data, asks=True))


POLICY = re.compile('http-equiv="Content-Security-Policy" content="([^"]*)"')


def drawn(html: str) -> Response:
    """A page, with the policy that is written in it as a header, too, and no other page around it."""
    written = POLICY.search(html)
    policy = f"{unescape(written[1])}; frame-ancestors 'none'" if written else "default-src 'none'"
    return HTMLResponse(html, headers={"Content-Security-Policy": policy})


# ------------------------------------------------------------------------------------------------ for programs

ERRORS = {
    400: "The body is no JSON, or has no text.", 401: "The key is missing or wrong.", 404: "There is no such route.",
    405: "The route has another method.", 413: "The body is too large.", 415: "The body is not application/json.",
    422: "A field is wrong, or does not fit.",
    429: "Too much is waiting; Retry-After says when to ask again.", 500: "The model is damaged, or something failed.",
    503: "The server is ending.", 504: "It took too long.",
}  # fmt: skip


@route("/openapi.json")
async def description(ask: Ask) -> Answer:
    """The server as OpenAPI 3.1 has it, from the routes themselves."""
    paths: dict[str, Any] = {}
    for one in ROUTES:
        for path in one.paths:
            at = paths.setdefault(re.sub(":path", "", path), {})
            at["post" if one.wanted else "get"] = _described(one, path)
    return {"openapi": "3.1.0", "info": {"title": "bertcli", "version": __version__}, "paths": paths}


def _described(one: Route, path: str) -> dict[str, Any]:
    parameters = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in re.findall(r"\{(\w+)", path)
    ]
    answer = {"description": "The answer; X-Truncated lists the texts that were cut."}
    errors = {str(status): {"description": why} for status, why in ERRORS.items()}
    described = {"summary": one.summary, "parameters": parameters, "responses": {"200": answer, **errors}}
    if one.wanted is None:
        return described
    own = {item.name: item for item in declared(one.wanted)}
    # text-embeddings-inference has names of its own for what OpenAI and Jina call otherwise.
    called = {name: name if is_openai(path) else (*item.metadata["names"], name)[0] for name, item in own.items()}
    fields = {called[name]: one for name, one in properties(one.wanted).items()}
    if len(one.uses) == 1 and "parameters" in fields:
        fields["parameters"] = fields["parameters"] | {"properties": parameters_of(one.uses[0])}
    required = [called[name] for name, item in own.items() if item.default is MISSING]
    schema = {"type": "object", "properties": fields, "required": required}
    return {**described, "requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
