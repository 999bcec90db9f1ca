"""The routes: what answers which path. Each file in `api/` declares those of one API; no list of the files is kept."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, TypeVar, get_type_hints

from bertcli.serve.requests import RequestModel
from bertcli.serve.served import Served

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Route:
    """Paths, and the function that answers a request to them.

    request: what a POST takes; None for a GET. response: the type of what is answered, for OpenAPI. uses: of a model,
    best first; none: any model. public: answered without a key.
    """

    paths: tuple[str, ...]
    answer: Callable[..., Awaitable[Any]]
    summary: str
    request: type[RequestModel] | None
    response: Any
    uses: Sequence[str] = ()
    public: bool = False


ROUTES: list[Route] = []  # those that have been declared so far; `all_routes` gives all


def route(
    *paths: str, uses: Sequence[str] = (), public: bool = False, request: type[RequestModel] | None = None
) -> Callable[[T], T]:
    """Declare that a function answers these paths. It is called by `Exchange.answer` and `app.Server`.

    Its second argument, if there is one, is the request, of its type or of the one given here; its docstring's first
    line is the summary.
    """

    def declare(answer: T) -> T:
        hints = get_type_hints(answer, include_extras=True)
        summary = (answer.__doc__ or "").partition("\n")[0]
        ROUTES.append(Route(paths, answer, summary, request or hints.get("request"), hints.get("return"), uses, public))  # type: ignore[arg-type]
        return answer

    return declare


def all_routes() -> list[Route]:
    """The routes of every API."""
    folder = Path(__file__).parent / "api"
    for module in sorted(module.name for module in iter_modules([str(folder)])):
        import_module(f"{__package__}.api.{module}")
    return ROUTES


def route_at(path: str) -> Route:
    """The route that has this path."""
    return next(one for one in ROUTES if path in one.paths)


def paths_for(served: Served) -> list[str]:
    """The routes that a model answers."""
    return [one.paths[0] for one in ROUTES if {*one.uses} & {*served.uses}]


def has_openai_errors(path: str) -> bool:
    """Whether clients of a path read OpenAI's errors; else those of text-embeddings-inference."""
    return path.startswith(("/v1/", "/v2/", "/embeddings"))
