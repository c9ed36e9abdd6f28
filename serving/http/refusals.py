"""Refusals by the server itself, with the usual error body, and their count."""

from collections.abc import Mapping
from http import HTTPStatus
from typing import NamedTuple

from msgspec import UNSET, UnsetType
from prometheus_client import Counter

from core.contract.answers import ID_HEADER, JSON, compose_headers
from core.contract.errors import ErrorBody, Refusal, new_request_id
from core.logs import log_refusal
from core.plain_json import encode

from . import bounds


class HttpRefusal(NamedTuple):
    status: int
    code: str
    message: str
    reason: str
    """Under which it is counted in the metrics."""
    max: int | UnsetType = UNSET
    headers: Mapping[str, str] = {}


class RequestRefused(Exception):
    """Raised inside the parser, which stops at it."""

    def __init__(self, refusal: HttpRefusal) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal


def malformed(message: str) -> HttpRefusal:
    return HttpRefusal(400, "malformed_request", message, "malformed")


MALFORMED = malformed("This is not a request in HTTP/1.1.")
OTHER_VERSION = HttpRefusal(505, "http_version_not_supported", "Use HTTP/1.1.", "malformed")
OTHER_CODING = malformed("The only Transfer-Encoding is chunked, and only in HTTP/1.1.")
OTHER_HOST = malformed("The target names another host than the Host header.")
BAD_UPGRADE = HttpRefusal(
    400,
    "invalid_upgrade",
    "A WebSocket begins with a GET without a body, after the answers to all earlier requests.",
    "upgrade",
)
BAD_HANDSHAKE = HttpRefusal(
    400, "invalid_upgrade", "A WebSocket needs one Sec-WebSocket-Key of 16 bytes in base64.", "upgrade"
)
OTHER_WEBSOCKET = HttpRefusal(
    426,
    "invalid_upgrade",
    "Use version 13 of the WebSocket protocol.",
    "upgrade",
    headers={"Sec-WebSocket-Version": "13", "Upgrade": "websocket", "Connection": "Upgrade, close"},
)
LONG_TARGET = HttpRefusal(414, "target_too_long", "Send a shorter path and query.", "head")
LONG_HEAD = HttpRefusal(
    431,
    "head_too_large",
    f"Send {bounds.MOST_HEAD_BYTES:,} bytes of headers at most, and {bounds.MOST_HEADERS} of them.",
    "head",
)
LONG_FRAMING = HttpRefusal(
    400, "malformed_request", "The body has more chunk extensions and trailers than content.", "body"
)
SLOW_HEAD = HttpRefusal(408, "request_timeout", "The head of the request did not end in time.", "slow_head")
SLOW_BODY = HttpRefusal(
    408, "body_timeout", "The body did not arrive in time. Send it without pauses.", "slow_body"
)
FULL = HttpRefusal(
    503,
    "overloaded",
    "The service has reached its maximum number of connections. Try again shortly.",
    "descriptors",
    headers={"Retry-After": "5"},
)
STOPPING = HttpRefusal(
    503,
    "overloaded",
    "This server is restarting. Connect again at once.",
    "stopping",
    headers={"Retry-After": "1"},
)


LONG_BODY = {
    most: HttpRefusal(413, "too_large", f"Send {most:,} bytes at most.", "body", most)
    for most in (bounds.MOST_BODY_BYTES, bounds.MOST_TICK_BYTES, bounds.MOST_IMPORT_BYTES)
}


def too_many_connections(limit: int) -> HttpRefusal:
    return HttpRefusal(
        429,
        "too_many_connections",
        f"{limit} connections are open from this address already: close one, or use those that are open.",
        "address",
        limit,
        headers={"Retry-After": "1"},
    )


def answer(refusal: HttpRefusal, date: list[tuple[bytes, bytes]]) -> bytes:
    """The whole answer; after it the connection ends."""
    request_id = new_request_id()
    error = Refusal(
        code=refusal.code,
        message=refusal.message,
        status=refusal.status,
        max=refusal.max,
        request_id=request_id,
    )
    body = encode(ErrorBody(error))
    about = {ID_HEADER: request_id, "Connection": "close"}
    headers = {
        **{name.decode(): value.decode() for name, value in date},
        **compose_headers(refusal.headers, about, JSON, len(body)),
    }
    lines = [f"HTTP/1.1 {refusal.status} {HTTPStatus(refusal.status).phrase}"]
    lines += (f"{name.lower()}: {value}" for name, value in headers.items())
    return "\r\n".join([*lines, "", ""]).encode("latin-1") + body


def log(refusal: HttpRefusal, address: str) -> None:
    kind = f"{refusal.status} {refusal.code}"
    log_refusal(kind, address, kind, status=refusal.status, code=refusal.code, reason=refusal.reason)


refused_total = Counter(
    "tickwire_http_refused",
    "Requests and connections that the server itself ended, before the application received them.",
    ["reason"],
    registry=None,
)
