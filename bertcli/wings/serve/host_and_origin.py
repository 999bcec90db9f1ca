"""Check Host and Origin of each request before its body is read, and add security headers to every answer.

A web page on any site can make a browser send requests to a server on the same machine. Two checks prevent that. The
Host header must be a name of this server, since an attacker's name may resolve to 127.0.0.1 (DNS rebinding). A request
that a page sends must come from our own page, or from an origin that `--cors` names.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from bertcli.wings.serve.requests import Refusal

# Names of this machine, by which a request may call the server whatever it is bound to.
LOCAL = ("localhost", "127.0.0.1", "[::1]")
# In `hosts` or `origins`: all are allowed.
ANY = "*"
# The one GET that computes something: its origin is checked, as that of a POST.
PASS_PAGE = "/pass"
# A Host header: a name or a bracketed IPv6 address, and perhaps a port.
HOST = re.compile(r"(\[[^\]]*\]|[^:\[\]]*)(?::\d*)?")
HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'",  # a page has a policy of its own
}


# Values by lower-case name.
Headers = Mapping[bytes, str]


class HostAndOrigin:
    """ASGI middleware: checks requests, and answers errors that the application raises, as JSON."""

    def __init__(
        self,
        app: ASGIApp,
        hosts: Sequence[str],
        origins: Sequence[str],
        refusal: Callable[[Scope, Exception], Response],
    ) -> None:
        """hosts: further names of this server, or "*". origins: of allowed pages. refusal: makes an error's answer."""
        self._app, self._refusal = app, refusal
        self._origins = {*origins}
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
            headers = {name: value.decode("latin-1") for name, value in scope["headers"]}
            self._check_host(scope, headers)
            self._check_origin(scope, headers)
            await self._app(scope, receive, with_headers)
        except Exception as error:
            if begun:
                # The answer has begun: it cannot be replaced by an error.
                raise
            await self._refusal(scope, error)(scope, receive, with_headers)

    def _check_host(self, scope: Scope, headers: Headers) -> None:
        """Refuse a request whose Host is not a name of this server. Errors: Refusal."""
        # Every browser sends a Host: a request without one is not from a page.
        if b"host" not in headers or ANY in self._hosts:
            return
        name = _without_port(headers[b"host"].lower())
        if name in self._hosts or name == _bound_address(scope):
            return
        why = f"The host {name!r} is not a name of this server. If it should be, start the server with"
        raise Refusal(421, f"{why} --allowed-host {name or 'NAME'}.", code="wrong_host")

    def _check_origin(self, scope: Scope, headers: Headers) -> None:
        """Refuse a request that a page of another site sends. Errors: Refusal."""
        is_pass_page = scope["path"].startswith(PASS_PAGE)
        if (scope["method"] != "POST" and not is_pass_page) or ANY in self._origins:
            return
        origin = headers.get(b"origin")
        if origin is not None:
            host = headers.get(b"host", "").lower()
            if origin.lower().partition("://")[2] == host or origin in self._origins:
                return
            page, option = f"the origin {origin!r}", f"--cors {origin}"
        elif is_pass_page and headers.get(b"sec-fetch-site", "none") not in ("same-origin", "none"):
            # A browser sends no Origin with the GET of an image or a link, but Sec-Fetch-Site.
            page, option = "another site", "--cors ORIGIN"
        else:
            return
        why = f"Pages of {page} may not send requests to this server. To allow them, start it with {option}."
        raise Refusal(403, why, code="wrong_origin")


def _bound_address(scope: Scope) -> str | None:
    """The address that the connection came to, as a Host header has it: the bound one, or with 0.0.0.0 one of many."""
    address, port = scope.get("server") or ("", None)
    # A Unix socket has a path and no port.
    if port is None:
        return None
    # A socket for both versions of IP has IPv4 addresses in this form.
    return _bracketed(str(address).removeprefix("::ffff:"))


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host and not host.startswith("[") else host


def _without_port(host: str) -> str:
    """The name in a Host header, without a final dot; an IPv6 address keeps its brackets."""
    found = HOST.fullmatch(host)
    return found[1].removesuffix(".") if found else host
