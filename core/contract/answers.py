"""Answers of the REST contract: their bodies and headers, and the documents that describe them."""

import time
from collections.abc import AsyncGenerator
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase, StreamingHttpResponse
from django.utils.cache import get_conditional_response

from core.plain_json import encode

METHODS = "GET, HEAD, OPTIONS"
EXPOSED = ", ".join(
    (
        "X-Request-Id, X-API-Version, Retry-After, X-Last-Closed, X-Quote-Age-Ms, X-Market-State",
        "X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, RateLimit-Policy, RateLimit",
        "X-AI-Limit, X-AI-Remaining, X-AI-Reset, X-Next-Cursor",
        "ETag, Accept-Ranges, Content-Range, Content-Disposition",
    )
)
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
ON_PREFLIGHT = {
    "Allow": METHODS,
    "Access-Control-Allow-Methods": METHODS,
    "Access-Control-Allow-Headers": "X-API-Key, If-None-Match, If-Range, Range",
    "Access-Control-Max-Age": "86400",
}

Body = bytes | tuple[bytes, ...]
"""In pieces where joining them would copy much."""
JSON = "application/json"
WITHOUT_BODY = (204, 304)


class Answer(msgspec.Struct):
    """What an action returns: an encoded body and headers of its own."""

    content: Body
    headers: dict[str, str] = {}
    status: int = 200
    code: str = ""
    """Of a refusal."""
    media_type: str = JSON
    streamed: AsyncGenerator[bytes, None] | None = None
    """A body that is made while it is sent, instead of `content`. If it raises, the connection breaks, so
    that nobody takes a part for the whole."""
    length: int | None = None
    """Of what is streamed, if it is known before."""

    @property
    def body(self) -> bytes:
        return self.content if isinstance(self.content, bytes) else b"".join(self.content)

    def as_response(self, method: str | None) -> HttpResponse | StreamingHttpResponse:
        headers = {**ON_EVERY_ANSWER, **self.headers}
        if self.status in WITHOUT_BODY:
            return HttpResponse(status=self.status, headers=headers)
        length = len(self.body) if self.streamed is None else self.length
        if length is not None:
            headers["Content-Length"] = str(length)
        known = {"status": self.status, "content_type": self.media_type, "headers": headers}
        if self.streamed is not None and method != "HEAD":
            return StreamingHttpResponse(self.streamed, **known)
        return HttpResponse(b"" if method == "HEAD" else self.body, **known)


class Document(NamedTuple):
    body: bytes
    fingerprint: str


def encode_document(content: Any) -> Document:
    body = encode(content)
    return Document(body, f'"{sha256(body).hexdigest()[:32]}"')


def answer_document(request: HttpRequest, document: Document) -> HttpResponseBase:
    headers = {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Expose-Headers": "ETag",
        "Cache-Control": "public, max-age=300",
        "ETag": document.fingerprint,
    }
    whole = HttpResponse(document.body, content_type="application/json", headers=headers)
    return get_conditional_response(request, document.fingerprint, response=whole) or whole


# What was already done for a request when the application takes it.
# In the extensions of its scope.
BEGUN = "tickwire.begun"


class Begun(NamedTuple):
    at_s: float
    """By the performance counter."""
    standing: Any
    """Of its account, which has been counted."""


def begun(scope: dict[str, Any]) -> Begun | None:
    return scope.get("extensions", {}).get(BEGUN)  # type: ignore[no-any-return]


def begun_at(scope: dict[str, Any]) -> float:
    before = begun(scope)
    return time.perf_counter() if before is None else before.at_s
