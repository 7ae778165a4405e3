"""Access control: requests need the token, a host name of this machine and, to write, the same origin."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from proctor.viewer.assets import POLICY

# Trusted types: the browser refuses to parse text as HTML.
_POLICY = POLICY | {
    "frame-ancestors": "'none'",
    "require-trusted-types-for": "'script'",
    "trusted-types": "'none'",
}
HEADERS = {
    "Content-Security-Policy": "; ".join(f"{key} {value}" for key, value in _POLICY.items()),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cache-Control": "no-cache",
}
NO_TOKEN = "This address has no token, or an old one. Use the address that `proctor view` printed.\n"


class AccessControl:
    def __init__(self, host: str) -> None:
        self.token = secrets.token_urlsafe(24)
        self._names = {"localhost", host.lower(), socket.gethostname().lower()}

    def cookie_name(self, request: web.Request) -> str:
        """Cookies ignore ports, so that the port is part of the name."""
        return f"proctor-{request.url.port}"

    def middleware(self) -> Middleware:
        @web.middleware
        async def check(request: web.Request, handler: Handler) -> web.StreamResponse:
            if not self._is_local_name(request):
                raise web.HTTPForbidden(text="Unknown host name: use the address that `proctor view` printed.\n")
            if not self._has_token(request):
                raise web.HTTPUnauthorized(text=NO_TOKEN)
            if request.method not in ("GET", "HEAD") and not _is_same_origin(request):
                raise web.HTTPForbidden(text="Only the page may write reviews.\n")
            return await handler(request)

        return check

    def set_cookie(self, request: web.Request, response: web.StreamResponse) -> None:
        """Stores the token in a cookie, which the browser sends only to this page."""
        if "token" in request.query:
            name = self.cookie_name(request)
            response.set_cookie(name, self.token, httponly=True, samesite="Strict", path="/")

    def _has_token(self, request: web.Request) -> bool:
        token = request.query.get("token") or request.cookies.get(self.cookie_name(request), "")
        return hmac.compare_digest(token.encode(errors="replace"), self.token.encode())

    def _is_local_name(self, request: web.Request) -> bool:
        """Refuses foreign names, which DNS rebinding could point here; an IP address cannot be rebound."""
        name = (request.url.host or "").lower()
        if name in self._names:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _is_same_origin(request: web.Request) -> bool:
    origin = urlsplit(request.headers.get("Origin", ""))
    own = bool(origin.netloc) and origin.netloc == request.headers.get("Host")
    return own and request.content_type == "application/json"


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    for name, value in HEADERS.items():
        response.headers.setdefault(name, value)
