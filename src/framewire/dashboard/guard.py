"""Who may look: every request and every connection goes through here, before anything else sees it.

On this machine everyone may, but only through a name of this machine: a page elsewhere could otherwise have its own
name lead here, or open a connection from the browser of whoever reads it. Elsewhere a token is needed. It is taken
from the address once, and kept as a cookie, so that it is neither in what people share nor in what proxies log.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

__all__ = ["Guard", "is_local"]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

COOKIE = "framewire-dashboard"
_MONTH = 30 * 86_400
_POLICY = "; ".join(  # noqa: FLY002 - a line each reads better
    [
        "default-src 'none'",
        # NiceGUI's page is a script of its own, and Vue makes functions of templates; none of them is made of data.
        "script-src 'self' 'unsafe-inline' 'unsafe-eval'",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data:",
        "font-src 'self' data:",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    ]
)
_HEADERS = [
    (b"content-security-policy", _POLICY.encode()),
    (b"referrer-policy", b"same-origin"),
    (b"x-content-type-options", b"nosniff"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
_UNKNOWN = """This dashboard needs a token. Open it with the address that `framewire dashboard` printed when it was
started, which ends in ?token=…, or ask whoever runs it.
"""
_NO_HOST = """This dashboard is only for this machine. To look from elsewhere, start it with --host and a token:
framewire dashboard --host 0.0.0.0 …
"""


def is_local(host: str) -> bool:
    """Whether a name or an address is one of this machine that nobody else can reach."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """An application that lets through to another one only who may."""

    def __init__(self, app: App, *, token: str | None, local: bool) -> None:
        self.app = app
        self._local = local
        self._token = None if token is None else token.encode()
        # The cookie is not the token: whoever finds one in a browser's files cannot pass the token on.
        self._cookie = None if token is None else hashlib.sha256(b"framewire cookie " + token.encode()).hexdigest()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        if (self._local and not is_local(_host(headers.get("host", "")))) or not _same_origin(headers):
            await _refuse(scope, send, 403, _NO_HOST)
        elif scope["type"] == "http" and (query := self._without_token(scope)) is not None:
            await self._welcome(scope, send, query)
        elif self._token is None or self._has_cookie(headers) or self._has_bearer(headers):
            await self.app(scope, receive, _hardened(send))
        else:
            await _refuse(scope, send, 401, _UNKNOWN)

    def _has_cookie(self, headers: dict[str, str]) -> bool:
        try:
            found = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return found is not None and hmac.compare_digest(found.value.encode(), (self._cookie or "").encode())

    def _has_bearer(self, headers: dict[str, str]) -> bool:
        kind, _, told = headers.get("authorization", "").partition(" ")
        return kind.lower() == "bearer" and self._is_token(told)

    def _is_token(self, told: str) -> bool:
        return self._token is not None and hmac.compare_digest(told.encode(), self._token)

    def _without_token(self, scope: Scope) -> str | None:
        """The rest of the query, if the token is in it."""
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if not any(name == "token" and self._is_token(value) for name, value in query):
            return None
        return urlencode([(name, value) for name, value in query if name != "token"])

    async def _welcome(self, scope: Scope, send: Send, query: str) -> None:
        """Keep the token as a cookie, and lead to the same page without it."""
        place = "/" + scope["raw_path"].decode("latin-1").lstrip("/\\") + (f"?{query}" if query else "")
        secure = "; Secure" if scope.get("scheme") == "https" else ""
        cookie = f"{COOKIE}={self._cookie}; Path=/; HttpOnly; SameSite=Strict; Max-Age={_MONTH}{secure}"
        told = [
            (b"location", place.encode("latin-1")),
            (b"set-cookie", cookie.encode()),
            (b"cache-control", b"no-store"),
        ]
        await _answer(send, 303, b"", told)


def _host(told: str) -> str:
    return urlsplit(f"//{told}").hostname or ""


def _same_origin(headers: dict[str, str]) -> bool:
    """Whether a request comes from a page of ours; those that no page makes have no origin."""
    origin = headers.get("origin")
    return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()


def _hardened(send: Send) -> Send:
    async def hardened(event: MutableMapping[str, Any]) -> None:
        if event["type"] == "http.response.start":
            event = {**event, "headers": [*event.get("headers", ()), *_HEADERS]}
        await send(event)

    return hardened


async def _refuse(scope: Scope, send: Send, status: int, why: str) -> None:
    if scope["type"] == "websocket":
        await send({"type": "websocket.close", "code": 1008})
    else:
        await _answer(send, status, why.encode(), [(b"content-type", b"text/plain; charset=utf-8")])


async def _answer(send: Send, status: int, body: bytes, headers: Iterable[tuple[bytes, bytes]]) -> None:
    await send({"type": "http.response.start", "status": status, "headers": [*headers, *_HEADERS]})
    await send({"type": "http.response.body", "body": body})
