"""The AsyncAPI document of this host's streams."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from market.streams.asyncapi import FLOW, PRICES, Scheme, document
from signals_feed.frames import CHANNEL as SIGNALS

from .documents import Document, answer, made_of


def scheme_of(request: HttpRequest) -> Scheme:
    return "wss" if request.is_secure() else "ws"


# A service has few names; where any subdomain is allowed there may be many.
@lru_cache(maxsize=8)
def content(host: str, scheme: Scheme) -> dict[str, Any]:
    """Nothing in it changes while the process lives."""
    return document((PRICES, FLOW, SIGNALS), host, scheme)


@lru_cache(maxsize=8)
def encoded(host: str, scheme: Scheme) -> Document:
    return made_of(content(host, scheme))


@require_safe
def asyncapi(request: HttpRequest) -> HttpResponseBase:
    return answer(request, encoded(request.get_host(), scheme_of(request)))
