"""Documents that tell programs what is served: for everybody, and not sent again while they are the same."""

from __future__ import annotations

from hashlib import sha256
from typing import Any, NamedTuple

from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import get_conditional_response

from accounts.plain_json import encode


class Document(NamedTuple):
    body: bytes
    fingerprint: str


def made_of(content: Any) -> Document:
    body = encode(content)
    return Document(body, f'"{sha256(body).hexdigest()[:32]}"')


def answer(request: HttpRequest, document: Document) -> HttpResponseBase:
    headers = {
        "Access-Control-Allow-Origin": "*",
        "Access-Control-Expose-Headers": "ETag",
        "Cache-Control": "public, max-age=300",
        "ETag": document.fingerprint,
    }
    whole = HttpResponse(document.body, content_type="application/json", headers=headers)
    return get_conditional_response(request, document.fingerprint, response=whole) or whole
