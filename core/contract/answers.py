"""Answers of the REST contract: their bodies and headers, and the documents that describe them."""

import time
from collections.abc import AsyncGenerator, Mapping
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.cache import get_conditional_response
from rest_framework.renderers import BaseRenderer

from core.plain_json import encode

Json = dict[str, Any]
EXAMPLE_TAG = '"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"'
REQUEST_ID = "req_k5ud2wqz3m7xhb4a"


def counting(description: str, example: int, *, minimum: int = 0) -> tuple[str, Json]:
    return description, {"type": "integer", "format": "int64", "minimum": minimum, "examples": [example]}


def one_word(description: str, *words: str) -> tuple[str, Json]:
    return description, {"type": "string", "enum": list(words)}


def patterned(description: str, pattern: str, example: str) -> tuple[str, Json]:
    return description, {"type": "string", "pattern": pattern, "examples": [example]}


# Every header of ours, with what the OpenAPI document says of it.
HEADERS: dict[str, tuple[str, Json]] = {
    "X-Request-Id": patterned(
        "Identifies this request; quote it if you report a failure.", "^req_[a-z2-7]{16}$", REQUEST_ID
    ),
    "X-API-Version": one_word("The version of the contract.", "1"),
    "X-RateLimit-Limit": counting("Requests that your tier allows in 60 seconds.", 120),
    "X-RateLimit-Remaining": counting("Requests that are left at the moment.", 57),
    "X-RateLimit-Reset": counting("Epoch seconds when the next request becomes available.", 1795262412),
    "RateLimit-Policy": patterned(
        "The limit, in the form of the IETF draft: tier, quota, window in seconds.",
        '^"[^"]+";q=[0-9]+;w=60$',
        '"pro";q=120;w=60',
    ),
    "RateLimit": patterned(
        "What remains, in the form of the IETF draft: tier, requests, seconds until the next one.",
        '^"[^"]+";r=[0-9]+;t=[0-9]+$',
        '"pro";r=57;t=12',
    ),
    "Retry-After": counting("The number of whole seconds after which a request will succeed.", 12, minimum=1),
    "WWW-Authenticate": one_word("How to authenticate.", "ApiKey"),
    "X-Last-Closed": (
        "Time of the last closed candle. Absent where there is none yet.",
        {"type": "string", "format": "date-time", "examples": ["2026-11-20T13:00:00Z"]},
    ),
    "X-Next-Cursor": patterned(
        "The cursor of the next page, where the body is not JSON. Absent on the last page.",
        r"^[A-Za-z0-9_.-]+$",
        "WyI0Y2Q3ZjQ1YzA4ZTI0YjFmIixbMTc5NTE4MzIwMDAwMCwxNzk1MTgzNDQwMDAwLGZhbHNlLDJdXQ.3kq0uXJ1mR5xZz2bV7c",
    ),
    "X-Epoch": patterned(
        "The numbering that the `seq` of all ticks of this page belongs to.", "^[0-9a-f]{12}$", "5f0c2a9be114"
    ),
    "X-Quote-Age-Ms": counting("Milliseconds since the quote's own time.", 262),
    "X-Market-State": one_word("The state of the market at the moment.", "open", "closed", "stale"),
    "ETag": patterned(
        "The SHA-256 of the whole body, in quotation marks.",
        '^"[0-9a-f]{64}"$',
        EXAMPLE_TAG,
    ),
    "Accept-Ranges": one_word("A part of the body can be requested with Range.", "bytes"),
    "Content-Range": patterned(
        "Which bytes these are, and the total number; with an asterisk, the total number only.",
        r"^bytes (?:[0-9]+-[0-9]+|\*)/[0-9]+$",
        "bytes 0-1023/48213",
    ),
    "X-AI-Limit": counting("AI calls of your tier on one UTC day.", 20),
    "X-AI-Remaining": counting("AI calls that are left today.", 18),
    "X-AI-Reset": counting("Epoch seconds of the next UTC midnight, when the count is reset.", 1795305600),
}
SOMETIMES = ("X-Last-Closed", "X-Next-Cursor", "X-Epoch")
# What a browser may show to a page of another site: all of ours that such a page can use.
EXPOSED = ", ".join([*(name for name in HEADERS if name != "WWW-Authenticate"), "Content-Disposition"])
ON_EVERY_ANSWER = {
    "X-API-Version": "1",
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Expose-Headers": EXPOSED,
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
}
if settings.SECURE_HSTS_SECONDS:
    ON_EVERY_ANSWER["Strict-Transport-Security"] = (
        f"max-age={settings.SECURE_HSTS_SECONDS}; includeSubDomains; preload"
    )
ID_HEADER = "X-Request-Id"
ON_PREFLIGHT = {
    "Access-Control-Allow-Methods": "GET, HEAD, OPTIONS",
    "Access-Control-Allow-Headers": "X-API-Key, If-None-Match, If-Range, Range",
    "Access-Control-Max-Age": "86400",
}

Body = bytes | tuple[bytes, ...]
"""In pieces if joining them would copy much."""
Content = Body | msgspec.Struct
JSON = "application/json"
WITHOUT_BODY = (204, 304)


class JSONRenderer(BaseRenderer):
    media_type, format = JSON, "json"

    def render(self, data: Content, accepted_media_type: str | None = None, context: Any = None) -> bytes:
        match data:
            case bytes():
                return data
            case tuple():
                return b"".join(data)
            case _:
                return encode(data)


AS_JSON = JSONRenderer()


class Answer(msgspec.Struct):
    """What an action returns: a body, which its renderer encodes if need be, and headers of its own."""

    content: Content
    headers: dict[str, str] = {}
    status: int = 200
    code: str = ""
    """Of a refusal."""
    media_type: str = JSON
    streamed: AsyncGenerator[bytes, None] | None = None
    """A body that is made while it is sent, instead of `content`. If it raises, the connection breaks, so
    that a part is never taken for the whole."""
    length: int | None = None
    """Of what is streamed, if it is known before."""
    exception: bool = False
    """DRF sets it on what its exception handler returns."""

    def as_response(
        self, method: str | None, about: Mapping[str, str], renderer: JSONRenderer = AS_JSON
    ) -> HttpResponseBase:
        """`about` is what the headers say of the request: its id, and its window."""
        if self.status in WITHOUT_BODY:
            response = HttpResponse(status=self.status, headers=compose_headers(self.headers, about))
            del response["Content-Type"]
            return response
        body = renderer.render(self.content) if self.streamed is None else b""
        length = len(body) if self.streamed is None else self.length
        headers = compose_headers(self.headers, about, self.media_type, length)
        if self.streamed is not None and method != "HEAD":
            return StreamedResponse(self.streamed, status=self.status, headers=headers)
        return HttpResponse(b"" if method == "HEAD" else body, status=self.status, headers=headers)


def compose_headers(
    own: Mapping[str, str],
    about: Mapping[str, str],
    media_type: str | None = None,
    length: int | str | None = None,
) -> dict[str, str]:
    """All headers of an answer, in the order in which they are sent. No other function puts them together."""
    headers = {**ON_EVERY_ANSWER, **own, **about}
    if media_type is not None:
        headers["Content-Type"] = media_type
    if length is not None:
        headers["Content-Length"] = str(length)
    return headers


class StreamedResponse(StreamingHttpResponse):
    """A body that is made while it is sent."""

    def __init__(self, streamed: AsyncGenerator[bytes, None], **named: Any) -> None:
        super().__init__(streamed, **named)
        self.streamed = streamed


class Document(NamedTuple):
    body: bytes
    fingerprint: str


def encode_document(content: Any) -> Document:
    body = encode(content)
    return Document(body, f'"{sha256(body).hexdigest()[:32]}"')


def address_of(request: HttpRequest) -> str:
    """Of this service, as the caller reached it. A document that names it goes to no shared cache, because a
    caller can make up the port, and a name below a domain of ours."""
    return f"{request.scheme}://{request.get_host()}"


def answer_document(
    request: HttpRequest, document: Document, *, names_address: bool = False
) -> HttpResponseBase:
    headers = {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Expose-Headers": "ETag",
        "Cache-Control": f"{'private' if names_address else 'public'}, max-age=300",
        "ETag": document.fingerprint,
    }
    whole = HttpResponse(document.body, content_type="application/json", headers=headers)
    return get_conditional_response(request, document.fingerprint, response=whole) or whole


# What the short path has done for a request that the application takes over, in the extensions of its scope.
ALREADY_DONE = "tickwire.already_done"


class AlreadyDone(NamedTuple):
    at_s: float
    """By the performance counter."""
    standing: Any
    """The counted standing of its account."""


def already_done(scope: dict[str, Any]) -> AlreadyDone | None:
    return scope.get("extensions", {}).get(ALREADY_DONE)  # type: ignore[no-any-return]


def started_at(scope: dict[str, Any]) -> float:
    before = already_done(scope)
    return time.perf_counter() if before is None else before.at_s
