"""The page for people: a box to type into, and what the models do with it. What it does is in `page.js`."""

from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from bertcli.report.page import element, page

LEAD = (
    "What these models make of your own words. Everything is computed on this server; below the result stands how to "
    "ask for it from a program."
)


def people_page(models: Sequence[dict[str, Any]], keyed: bool) -> str:
    """The page for these models, as `/info` has them; `keyed`: with a field for the key that requests need."""
    folder = files("bertcli.serve")
    style, script = (folder.joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    key = [element("label", "Key ", element("input", id="key", type="password"))] if keyed else []
    bar = element(
        "div",
        element("label", "Model ", element("select", id="model")),
        element("div", id="tasks", role="tablist", aria_label="What to do"),
        *key,
        id="bar",
    )
    buttons = element(
        "div", element("button", "Run", type="submit"), element("button", "Look inside", type="button", id="look")
    )
    form = element("form", element("section", id="fields"), buttons, id="ask")
    shown = element(
        "section", element("h2", "The same for a program"), element("pre", id="curl"), element("h2", "The answer"),
        element("pre", id="json"), id="shown", hidden=True,
    )  # fmt: skip
    result = element("section", id="result", aria_live="polite")
    data = {"models": [{"model_id": one["model_id"], "uses": one["uses"]} for one in models], "keyed": keyed}
    return page(
        "bertcli", bar, form, result, shown, lead=LEAD, style=style, script=script, data=data, asks=True,
    )  # fmt: skip
