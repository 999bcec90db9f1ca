"""The routes about the server: /health, /metrics, and the pages for people, such as /pass."""

import re
from html import unescape
from importlib.resources import files
from typing import Any, Literal
from urllib.parse import quote

from starlette.responses import JSONResponse, PlainTextResponse, Response
from typing_extensions import TypedDict

from bertcli.analysis.trace.page import PageOptions, page_of_text
from bertcli.errors import nearest, quoted
from bertcli.files.texts import Text
from bertcli.report.page import Markup, page
from bertcli.tasks.limits import check_texts
from bertcli.wings.serve.answers import LongResponse
from bertcli.wings.serve.exchange import Exchange
from bertcli.wings.serve.requests import LONGEST_NAME, Refusal
from bertcli.wings.serve.routes import route

# Digits of a whole number in the query of a pass.
MOST_DIGITS = 9
# What the query of a pass may have.
PASS_FIELDS = ("text", "text_pair", "contrast", "model", "layer", "head", "token")
# Most bytes of the page of a pass.
PASS_BOUND = 64 << 20
LEAD = (
    "Try these models on your own text. Everything is computed on this server. Below each result is the request "
    "with which a program gets it."
)
POLICY = re.compile('http-equiv="Content-Security-Policy" content="([^"]*)"')


class Health(TypedDict):
    status: Literal["ok"]


@route("/health", public=True)
async def health(exchange: Exchange) -> Health:
    """The state of the process: 200 as long as it answers."""
    return {"status": "ok"}


@route("/ready", public=True)
async def ready(exchange: Exchange) -> JSONResponse:
    """The state of the server: 200 if it accepts requests, 503 once it is shutting down."""
    if exchange.service.draining:
        return JSONResponse({"status": "draining"}, 503)
    return JSONResponse({"status": "ready"})


@route("/metrics")
async def metrics(exchange: Exchange) -> PlainTextResponse:
    """Counts and times, for Prometheus."""
    text = exchange.service.metrics.text(exchange.service.stream.size)
    return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


@route("/pass", "/pass/{model:path}", query=PASS_FIELDS)
async def pass_page(exchange: Exchange) -> Response:
    """The forward pass of `text` through `model` as a page, with a form for another text; beside it `contrast`."""
    query = {name: value for name, value in exchange.request.query_params.items() if value}
    for name in query:
        if name not in PASS_FIELDS:
            why = f"There is no field {quoted(name)}. {nearest(name[:LONGEST_NAME], PASS_FIELDS)}"
            raise Refusal(422, why, name[:LONGEST_NAME], "unknown_field")
    model_name = exchange.request.path_params.get("model") or query.get("model")
    served, _ = exchange.service.choose((), model_name)
    numbers: dict[str, Any] = {}
    for name in query.keys() & {"layer", "head", "token"}:
        digits = query[name].removeprefix("-")
        if not digits.isdecimal() or len(digits) > MOST_DIGITS:
            raise Refusal(
                422,
                f"{name} must be a whole number, not {quoted(query[name])}.",
                name,
                "wrong_shape",
            )
        numbers[name] = int(query[name])
    options = PageOptions(**numbers, bound=PASS_BOUND, ask=f"/pass/{quote(served.name)}")
    text, pair, contrast = query.get("text", ""), query.get("text_pair"), query.get("contrast")
    check_texts([Text(one or "") for one in (text, pair, contrast)], exchange.cost.limits)

    def draw() -> Response:
        return page_response(page_of_text(served.model, text, pair, contrast, options))

    async with exchange.service.drawing:
        return await exchange.while_wanted(draw)


@route("/", public=True)
async def people_page(exchange: Exchange) -> Response:
    """A page on which people try the models; `page.js` sends its requests and draws the answers."""
    folder = files("bertcli.wings.serve")
    body, style, script = (folder.joinpath(name).read_text("utf-8") for name in ("page.html", "page.css", "page.js"))
    keyed = exchange.service.limits.api_key is not None
    models: list[dict[str, Any]] = []
    # This page needs no key. With one, its script gets the models from /info, with the key that is typed in.
    if not keyed:
        models = [
            {"model_id": one.name, "uses": [*one.uses], "mask_token": one.mask_token} for one in exchange.service.models
        ]
    data = {"models": models, "keyed": keyed}
    return page_response(page("bertcli", Markup(body), lead=LEAD, style=style, script=script, data=data, asks=True))


def page_response(html: str) -> Response:
    """Answer with a page. Its Content-Security-Policy is also sent as a header, and no other site may frame it."""
    in_page = POLICY.search(html)
    policy = "default-src 'none'"
    if in_page:
        policy = f"{unescape(in_page[1])}; frame-ancestors 'none'"
    return LongResponse(html.encode(), headers={"Content-Security-Policy": policy}, media_type="text/html")
