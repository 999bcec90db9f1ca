"""Check Host and Origin of each request before its body is read, and add security headers to every answer.

A web page on any site can make a browser send requests to a server on the same machine. Two checks prevent that. The
Host header must be a name of this server, since an attacker's name may resolve to 127.0.0.1 (DNS rebinding). A request
that a page sends must come from our own page, or from an origin that `--cors` names.
"""

import re
from collections.abc import Callable, Iterator, Sequence

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bertcli.serve.requests import Refusal

LOCAL = ("localhost", "127.0.0.1", "[::1]")
ANY = "*"
# The one GET that computes something: it is checked like a POST.
DRAWN = "/pass"
HOST = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::\d*)?")
HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",  # a page has a policy of its own
}


class Door:
    """ASGI middleware: checks requests, and answers errors that the application raises, as JSON."""

    def __init__(
        self,
        app: ASGIApp,
        hosts: Sequence[str],
        origins: Sequence[str],
        refusal: Callable[[Scope, Exception], Response],
    ) -> None:
        """hosts: further names of this server, or "*". origins: whose pages may ask. refusal: answers an error."""
        self._app, self._origins, self._refusal = app, origins, refusal
        self._hosts = {*LOCAL, *(_bracketed(host.lower()) for host in hosts)}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        begun = False

        async def with_headers(message: Message) -> None:
            nonlocal begun
            if message["type"] == "http.response.start":
                begun = True
                given = [*message.get("headers", ())]
                names = {name.lower() for name, _ in given}
                missing = [(name, value) for name, value in HEADERS.items() if name not in names]
                message = {**message, "headers": [*given, *missing]}
            await send(message)

        try:
            self._check(scope)
            await self._app(scope, receive, with_headers)
        except Exception as error:
            if begun:
                # The answer has begun: it cannot be replaced by an error.
                raise
            await self._refusal(scope, error)(scope, receive, with_headers)

    def _check(self, scope: Scope) -> None:
        """Check Host and Origin. Errors: Refused for a Host not of this server, and requests of other sites' pages."""
        headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
        host = headers.get(b"host", "").lower()
        name = _without_port(host)
        known = b"host" not in headers or ANY in self._hosts  # every browser sends a Host
        if not known and name not in {*self._hosts, *_own_address(scope)}:
            why = f"This server is not called {name!r}: start it with --allowed-host {name or 'NAME'} if it is."
            raise Refusal(421, why, code="wrong_host")
        drawn = scope["path"].startswith(DRAWN)
        if scope["method"] != "POST" and not drawn:
            return
        origin = headers.get(b"origin")
        own = origin is None or origin.lower().partition("://")[2] == host
        # A browser sends no Origin with a GET of an image or a link, but says that another site's page is behind it.
        elsewhere = drawn and headers.get(b"sec-fetch-site", "none") not in ("same-origin", "none")
        if (not own or (elsewhere and origin is None)) and not {origin, ANY} & {*self._origins}:
            where = f"the origin {origin!r}" if origin else "another site"
            raise Refusal(403, f"Pages of {where} may not ask here (--cors lets them).", code="wrong_origin")


def _own_address(scope: Scope) -> Iterator[str]:
    """The address that the connection came to, which is what it is bound to, or one of many with 0.0.0.0."""
    server = scope.get("server")
    if server and server[1] is not None:
        yield _bracketed(server[0].removeprefix("::ffff:"))  # of IPv4 at a socket for both


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _without_port(host: str) -> str:
    """The name in a Host header, without a final dot; an IPv6 address keeps its brackets."""
    found = HOST.fullmatch(host)
    return found[1].removesuffix(".") if found else host
