"""The command serve: its options, limits and messages. The server is in serve/."""

import logging
import os
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from bertcli import extensions
from bertcli.cli.model import open_as, public_name
from bertcli.cli.options import (
    EngineOptions,
    ModelOptions,
    engines_begun,
    known_engine,
    models_given,
    wrong,
)
from bertcli.errors import BertcliError
from bertcli.names import SENTENCE_SAMPLE
from bertcli.tasks.options import option

if TYPE_CHECKING:
    from bertcli.model import Model

logger = logging.getLogger("bertcli")
NEEDED = ("orjson", "pydantic", "starlette", "uvicorn")
# Engines that are as fast as NumPy, or faster, in a process that is warm.
FAST = [other for other in extensions.engines() if other.served_with]


def _engine_help() -> str:
    names = ["numpy", *(other.name for other in extensions.engines())]
    if len(names) > 1:
        names[-1] = f"or {names[-1]}"
    where = "".join(f"{other.name} if {other.title} is installed, else " for other in FAST)
    return f"{', '.join(names)}. (default: {where}numpy)"


@dataclass(frozen=True, eq=False, repr=False)
class ServedModels(ModelOptions):
    """The models of the server."""

    model: list[str] | None = option(  # type: ignore[assignment]
        None, "DIR|HUB_ID", "A folder, or a name on the Hugging Face Hub; NAME=FOLDER says "
        "what clients call it; repeat for more. "
        "(default: BERTCLI_MODEL, or the bundled sentence model)", "-m", "--model",
    )  # fmt: skip


@dataclass(frozen=True, eq=False, repr=False)
class ServeOptions:
    """The server's address, access and log."""

    host: str = option("127.0.0.1", "HOST", "Listen on this address; 0.0.0.0 is all interfaces. (default: 127.0.0.1)")
    port: int = option(8080, "PORT", "Listen on this port; 0 picks a free one. (default: 8080)", least=0)
    uds: str | None = option(None, "PATH", "Listen on this Unix socket instead of a host and port.")
    api_key: str | None = option(
        None, "KEY", "Answer only requests with this key (Authorization: Bearer KEY).", envvar="BERTCLI_API_KEY",
        show_envvar=True,
    )  # fmt: skip
    cors: list[str] | None = option(None, "ORIGIN", "Allow requests from web pages of this origin; repeat for more.")
    truncation: Literal["auto", "error"] = option(
        "auto", "MODE", "A text that is too long: auto (default) cuts it and says so, error refuses it."
    )
    allowed_host: list[str] | None = option(
        None, "NAME", "Accept requests to this host name, besides localhost and the bound address; repeat for more."
    )
    token_ids: bool = option(
        False, "", "Accept ids of the model's own vocabulary in place of texts, as OpenAI's embeddings do."
    )
    quiet: bool = option(False, "", "Do not log requests to stderr.")


@dataclass(frozen=True, eq=False, repr=False)
class ServedEngine(EngineOptions):
    """The engine."""

    engine: str | None = option(  # type: ignore[assignment]
        None, "NAME", _engine_help(), callback=known_engine, autocompletion=engines_begun
    )


def serve(models: ServedModels, options: ServeOptions, engine: ServedEngine) -> None:
    """Serve models over HTTP: embeddings, rerank, classify, fill-mask, tag, answer.

    bertcli serve
    bertcli serve -m sentence-transformers/all-MiniLM-L6-v2 --port 8080
    bertcli serve -m my-embedder -m my-reranker --api-key "$KEY"
    curl localhost:8080/v1/embeddings -H 'Content-Type: application/json' \\
      -d '{"input": "A dog ran home."}'

    It answers requests as these APIs do:

      OpenAI, Cohere               embeddings
      Jina, Cohere                 rerank
      text-embeddings-inference    its HTTP routes
      Ollama                       embeddings
      transformers' pipelines      classify, fill-mask, tag, answer and others

    Open http://localhost:8080/ to try the models on a page; /openapi.json describes
    every route. Results are those of the commands. A text beyond the model's limit
    is cut, and the header X-Truncated of the answer says which.

    It needs pip install 'bertcli[serve]'. Ctrl-C or SIGTERM stops the server after
    it has answered the requests that it has accepted.
    """
    if not all(map(find_spec, NEEDED)):
        raise BertcliError("bertcli serve needs a few more packages: pip install 'bertcli[serve]'.")
    # An empty variable is as if there was none for the command line, and would open the server to everyone.
    given = os.environ.get("BERTCLI_API_KEY") if options.api_key is None else options.api_key
    key = None if given is None else given.strip()
    if key == "":
        raise wrong("--api-key", "the key is empty: give one, or leave out --api-key and BERTCLI_API_KEY.")
    if key is not None and not key.isprintable():
        raise wrong("--api-key", "the key has a line break or another control character, which no header can have.")
    if options.port > 65535:
        raise wrong("--port", f"{options.port} is no port: choose 1 to 65535, or 0 for a free one.")
    given_models = models_given(models.model)
    from bertcli.engine.threads import thread_count
    from bertcli.tasks.running.batches import BATCH_TOKENS
    from bertcli.wings.serve.run import serve as run
    from bertcli.wings.serve.served_model import Served
    from bertcli.wings.serve.service import Limits

    opened = []
    named = [*map(_named, given_models or [SENTENCE_SAMPLE])]
    for public, _ in named:
        if sum(other == public for other, _ in named) > 1:
            raise wrong("--model", f"two models are called {public}: name one of them, as in -m NAME=FOLDER.")
    several = len(named) > 1
    for public, name in named:
        one = ModelOptions(model=name if given_models else None)
        model = _opened(one, engine, several)
        opened.append(Served(model.called(public), public))
    # A browser cannot reach a Unix socket, so that any Host may be behind it unless some are named.
    hosts = ("*",) if options.uds and not options.allowed_host else (options.host, *(options.allowed_host or ()))
    limits = Limits(
        truncation=options.truncation,
        api_key=key,
        batch_tokens=BATCH_TOKENS * thread_count(),
        cors=tuple(options.cors or ()),
        hosts=hosts,
        token_ids=options.token_ids,
        quiet=options.quiet,
    )
    run(opened, limits, options.host, options.port, None if options.uds is None else Path(options.uds))


def _named(given: str) -> tuple[str, str]:
    """The name that clients see, and the folder or the name on the Hub, of NAME=FOLDER or a model alone."""
    name, equals, model = given.partition("=")
    if equals and name and not Path(given).exists():
        return name, model
    return public_name(given), given


def _opened(options: ModelOptions, engine: ServedEngine, several: bool) -> "Model":
    """Open a model with the engine that is named, else with the first that is installed and takes the model.

    several: begin each note with the model's name. Errors: BertcliError.
    """
    from bertcli.model import Model

    numpy = replace(engine, engine=engine.engine or "numpy")
    installed = [other.name for other in FAST if all(map(find_spec, other.served_with))]
    if engine.engine is None and installed:
        first = replace(engine, engine=installed[0])
        try:
            return open_as(Model, options, SENTENCE_SAMPLE, first, name_in_notes=several)
        # A cache that cannot be written, say. What is wrong with the model itself, NumPy reports, too.
        except BertcliError as error:
            model = open_as(Model, options, SENTENCE_SAMPLE, numpy, name_in_notes=several)
            logger.info("NumPy computes %s: %s", model.name, error)
            return model
    return open_as(Model, options, SENTENCE_SAMPLE, numpy, name_in_notes=several)
