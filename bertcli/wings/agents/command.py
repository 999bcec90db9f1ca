"""The command mcp: which models and folders a client may use. The protocol is in server.py."""

import logging
import sys
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import TYPE_CHECKING

from bertcli.cli.model import open_as, public_name
from bertcli.cli.options import ModelOptions, models_given, wrong
from bertcli.errors import BertcliError
from bertcli.tasks.options import option

if TYPE_CHECKING:
    from bertcli.model import Model


logger = logging.getLogger("bertcli")


@dataclass(frozen=True, eq=False, repr=False)
class AgentModels(ModelOptions):
    """The models that a client may use."""

    model: list[str] | None = option(  # type: ignore[assignment]
        None,
        "DIR|HUB_ID",
        "A model to use, for what it can do; repeat for more. (default: BERTCLI_MODEL, or the bundled ones)",
        "-m",
        "--model",
    )


@dataclass(frozen=True, eq=False, repr=False)
class AgentOptions:
    """The files that a client may name."""

    root: list[str] | None = option(
        None, "DIR", "Files below this folder may be read; repeat for more. (default: the working folder)"
    )
    index: str | None = option(
        None, "FILE", "Keep the vectors of searched files in this file, too, for the next start. (default: in memory)"
    )


def mcp(models: AgentModels, options: AgentOptions) -> None:
    """Give an assistant or an editor search, redaction and labels (MCP), locally.

    bertcli mcp
    bertcli mcp --root ~/notes --root ~/papers
    bertcli mcp -m dslim/bert-base-NER

    The Model Context Protocol over standard input and output: an assistant starts
    this command and asks it. "bertcli guide agents" says how to tell yours, and
    when to use which tool. Needs the extra: pip install 'bertcli[agents]'
    """
    if find_spec("mcp") is None:
        raise BertcliError("bertcli mcp needs the package mcp: pip install 'bertcli[agents]'.")
    from bertcli.files.read.passages import ENDINGS
    from bertcli.model import Model
    from bertcli.wings.agents.roots import Roots
    from bertcli.wings.agents.server import serve
    from bertcli.wings.agents.tools import AvailableModels, tools

    roots = Roots(options.root or ["."])
    if options.index is not None and options.index.lower().endswith(ENDINGS):
        raise wrong("--index", f"choose a name that does not end in {', '.join(ENDINGS)}, which search reads.")

    def open_model(name: str) -> "Model":
        opened = open_as(Model, replace(models, model=name), name)  # type: ignore[arg-type]
        return opened.called(public_name(name))

    given = models_given(models.model)
    available = AvailableModels(given, open_model)
    for name in given:
        available.opened(name)
    if sys.stdin.isatty():
        logger.info("waiting for the requests of an assistant, which starts this command: bertcli guide agents.")
    serve(tools(available, roots, options.index))
