"""Who may ask the page on this machine, and how much may be sent."""

import hmac
import ipaddress
from urllib.parse import urlsplit

from starlette.exceptions import HTTPException
from starlette.middleware.base import BaseHTTPMiddleware, RequestResponseEndpoint
from starlette.requests import ClientDisconnect, Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp

__all__ = ["MOST_BYTES", "Guard", "body", "refusal"]

_OWN_SITES = ("none", "same-origin")  # as browsers say where a question comes from
MOST_BYTES = 4_000_000  # of a picture that is sent


class Guard(BaseHTTPMiddleware):
    """Refuses requests without the key, those that name another host, and what a page from elsewhere sends.

    Another user of the machine reaches the address, but has no key. A name that is pointed here by somebody else (DNS
    rebinding) stands in the header Host, and a foreign page in the header Origin. Where the page is served at every
    address of the machine, Host must be one in numbers.

    Args:
        host: the address that the page is served at.
        name: what else that is called, by whoever serves it.
        key: what a request must bring as `key=…`; "" asks for none.
    """

    def __init__(self, app: ASGIApp, host: str, name: str = "", key: str = "") -> None:
        super().__init__(app)
        self.host, self.name, self.key = host, name, key

    async def dispatch(self, request: Request, call_next: RequestResponseEndpoint) -> Response:
        """403, or the answer."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        site = request.headers.get("sec-fetch-site", "none")
        is_own_site = site in _OWN_SITES or request.url.path == "/"  # to which links lead from anywhere
        if not (self._is_own(host) and is_own_site and origin in (None, f"http://{host}")):
            return PlainTextResponse("gsa explore answers its own page only", 403)
        if not hmac.compare_digest(request.query_params.get("key", "").encode(), self.key.encode()):
            return PlainTextResponse("open the whole address that gsa explore has printed: it ends in a key", 403)
        answer = await call_next(request)
        answer.headers["X-Content-Type-Options"] = "nosniff"
        answer.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        answer.headers["Cache-Control"] = "no-store"
        answer.headers["Referrer-Policy"] = "no-referrer"
        return answer

    def _is_own(self, host: str) -> bool:
        if self.name and host.partition(":")[0] == self.name:
            return True
        try:
            name = urlsplit(f"//{host}").hostname or ""
            bound = ipaddress.ip_address("127.0.0.1" if self.host == "localhost" else self.host)
        except ValueError:
            return host.rpartition(":")[0] == self.host
        if name == "localhost":
            return bound.is_loopback or bound.is_unspecified
        try:
            return ipaddress.ip_address(name) == bound or bound.is_unspecified
        except ValueError:
            return False


async def body(request: Request) -> bytes:
    """What was sent, 413 where it is too large, which is seen before it is all here."""
    content = bytearray()
    try:
        async for chunk in request.stream():
            content += chunk
            if len(content) > MOST_BYTES:
                raise HTTPException(413, f"a picture must have at most {MOST_BYTES:,} bytes")
    except ClientDisconnect:
        raise HTTPException(400, "the picture did not come whole") from None
    return bytes(content)


async def refusal(_: Request, error: Exception) -> Response:
    """The reason alone, as text for the page."""
    assert isinstance(error, HTTPException)
    return PlainTextResponse(error.detail, error.status_code)
