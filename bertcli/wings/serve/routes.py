"""The table of routes: path to function. Files in `api/` fill it by `@route` when `all_routes` imports them all."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, TypeVar, get_type_hints

from bertcli.wings.serve.requests import RequestModel
from bertcli.wings.serve.served_model import Served, options_of

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Route:
    """Paths, and the function that answers requests to them.

    request: the class of a POST's body; None for a GET. response: the answer's type, for OpenAPI. uses: the uses of a
    model that can answer, best first; none is any model. public: answered without a key. query: what the query of a
    GET may have.
    """

    paths: tuple[str, ...]
    answer: Callable[..., Awaitable[Any]]
    summary: str
    request: type[RequestModel] | None
    response: Any
    uses: Sequence[str] = ()
    public: bool = False
    query: Sequence[str] = ()


# The routes declared so far; `all_routes` gives all.
ROUTES: list[Route] = []


def route(
    *paths: str,
    uses: Sequence[str] = (),
    public: bool = False,
    request: type[RequestModel] | None = None,
    query: Sequence[str] = (),
) -> Callable[[T], T]:
    """Declare that a function answers these paths. It is called by `Exchange.answer` and `app.Server`.

    Its second argument, if there is one, is the request, of its type or of the one given here. The first line of its
    docstring is the route's summary in OpenAPI.
    """

    def declare(answer: T) -> T:
        hints = get_type_hints(answer, include_extras=True)
        declared = Route(
            paths=paths,
            answer=answer,  # type: ignore[arg-type]
            summary=(answer.__doc__ or "").partition("\n")[0],
            request=request or hints.get("request"),
            response=hints.get("return"),
            uses=uses,
            public=public,
            query=query,
        )
        ROUTES.append(declared)
        return answer

    return declare


def all_routes() -> list[Route]:
    """The routes of every API."""
    folder = Path(__file__).parent / "api"
    for module in sorted(module.name for module in iter_modules([str(folder)])):
        import_module(f"{__package__}.api.{module}")
    return ROUTES


def route_at(path: str) -> Route:
    """Find the route that is declared with this path, which must exist."""
    return next(one for one in ROUTES if path in one.paths)


def places_of_options(route: Route) -> dict[str, str]:
    """By each option of the tasks that a route computes: the path that does what it asks for; "" without one."""
    options = options_of(tuple(route.uses))
    return {name: next((one.paths[0] for one in ROUTES if use in one.uses), "") for name, use in options.items()}


def paths_for(served: Served) -> list[str]:
    """The first path of each route that a model can answer."""
    able = (one for one in ROUTES if {*one.uses} & {*served.uses})
    return [first for first, *_ in (one.paths for one in able)]


def has_openai_errors(path: str) -> bool:
    """True if clients of a path expect errors in OpenAI's shape, False for that of text-embeddings-inference."""
    return path.startswith(("/v1/", "/v2/", "/embeddings"))
