"""The routes about the server: /health, /metrics, and the pages for people, such as /pass."""

import re
from html import unescape
from importlib.resources import files
from typing import Any, Literal
from urllib.parse import quote

from starlette.responses import JSONResponse, PlainTextResponse, Response
from typing_extensions import TypedDict

from bertcli.analysis.trace.page import PageOptions, page_of_text
from bertcli.errors import quoted
from bertcli.report.page import Markup, page
from bertcli.serve.answers import LongResponse
from bertcli.serve.exchange import Exchange
from bertcli.serve.requests import Refusal
from bertcli.serve.routes import route

PASS_BOUND = 64 << 20  # bytes of the page of a pass
LEAD = (
    "Try these models on your own text. Everything is computed on this server, and each result stands with the request "
    "that gives it to a program."
)
POLICY = re.compile('http-equiv="Content-Security-Policy" content="([^"]*)"')


class Health(TypedDict):
    status: Literal["ok"]


@route("/health", public=True)
async def health(exchange: Exchange) -> Health:
    """Whether the process can answer."""
    return {"status": "ok"}


@route("/ready", public=True)
async def ready(exchange: Exchange) -> JSONResponse:
    """Whether it accepts requests."""
    draining = exchange.service.draining
    return JSONResponse({"status": "draining" if draining else "ready"}, 503 if draining else 200)


@route("/metrics")
async def metrics(exchange: Exchange) -> PlainTextResponse:
    """Counts and times, for Prometheus."""
    text = exchange.service.metrics.text(exchange.service.stream.size)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


@route("/pass", "/pass/{model:path}")
async def pass_page(exchange: Exchange) -> Response:
    """The pass of `text` through `model` as a page, from which another text can be asked for."""
    given = {name: value for name, value in exchange.request.query_params.items() if value}
    name = exchange.request.path_params.get("model") or given.get("model")
    served, _ = exchange.service.choose((), name)
    numbers: dict[str, Any] = {}
    for name in given.keys() & {"layer", "head", "token"}:
        if not given[name].removeprefix("-").isdecimal():
            raise Refusal(422, f"{name} must be a whole number, not {quoted(given[name])}.", name, "wrong_shape")
        numbers[name] = int(given[name])
    options = PageOptions(**numbers, bound=PASS_BOUND, ask=f"/pass/{quote(served.name)}")
    texts = given.get("text", ""), given.get("pair"), given.get("versus")
    exchange.check_texts([text for text in texts if text])
    async with exchange.service.drawing:
        return await exchange.in_thread(lambda: drawn(page_of_text(served.model, *texts, options)))


@route("/", public=True)
async def people_page(exchange: Exchange) -> Response:
    """A box to type into, and what the models do with it: what `page.js` does."""
    folder, keyed = files("bertcli.serve"), exchange.service.limits.api_key is not None
    body, style, script = (folder.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("html", "css", "js"))
    # With a key nothing is said of the models: the script asks /info for them with the key that is typed in.
    models = [] if keyed else [{"model_id": one.name, "uses": [*one.uses]} for one in exchange.service.models]
    data = {"models": models, "keyed": keyed}
    return drawn(page("bertcli", Markup(body), lead=LEAD, style=style, script=script, data=data, asks=True))


def drawn(html: str) -> Response:
    """Answer with a page; its Content-Security-Policy is a header, too, and no other site may frame it."""
    written = POLICY.search(html)
    policy = f"{unescape(written[1])}; frame-ancestors 'none'" if written else "default-src 'none'"
    return LongResponse(html.encode(), headers={"Content-Security-Policy": policy}, media_type="text/html")
