"""Who may ask: only someone who knows the token, by a name that is really this machine's, from this page."""

from __future__ import annotations

import hmac
import ipaddress
import secrets
import socket
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware

from proctor.viewer.assets import POLICY

# Trusted types: the browser itself refuses to read HTML out of a text, whatever the page's scripts might try.
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
NO_TOKEN = (
    "This address has no token, or an old one. Use the address that `proctor view` printed when it was started.\n"
)


class AccessControl:
    def __init__(self, host: str) -> None:
        self.token = secrets.token_urlsafe(24)
        self._names = {"localhost", host.lower(), socket.gethostname().lower()}

    def cookie_name(self, request: web.Request) -> str:
        """Cookies know no ports: two pages on one machine must not take each other's."""
        return f"proctor-{request.url.port}"

    def middleware(self) -> Middleware:
        @web.middleware
        async def guarded(request: web.Request, handler: Handler) -> web.StreamResponse:
            if not self._is_own_name(request):
                raise web.HTTPForbidden(text="This server does not go by that name.\n")
            if not self._is_known(request):
                raise web.HTTPUnauthorized(text=NO_TOKEN)
            if request.method not in ("GET", "HEAD") and not _is_same_origin(request):
                raise web.HTTPForbidden(text="Only the page itself may write.\n")
            return await handler(request)

        return guarded

    def welcome(self, request: web.Request, response: web.StreamResponse) -> None:
        """From now on the browser brings the token by itself, to this page alone."""
        if "token" in request.query:
            name = self.cookie_name(request)
            response.set_cookie(name, self.token, httponly=True, samesite="Strict", path="/")

    def _is_known(self, request: web.Request) -> bool:
        told = request.query.get("token") or request.cookies.get(self.cookie_name(request), "")
        return hmac.compare_digest(told.encode(errors="replace"), self.token.encode())

    def _is_own_name(self, request: web.Request) -> bool:
        """Any other site may have its name lead here and then ask as if it were this one; an address it cannot fake."""
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
