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


def answer_document(request: HttpRequest, document: Document) -> HttpResponseBase:
    headers = {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Expose-Headers": "ETag",
        "Cache-Control": "public, max-age=300",
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
