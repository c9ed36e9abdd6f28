"""The AsyncAPI document of this host's streams."""

from functools import cache
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from django.views.decorators.http import require_safe

from core.contract.answers import answer_document, encode_document
from market.streams.docs.asyncapi import CHANNELS, Scheme, document, servers
from signals_feed.stream import CHANNEL as SIGNALS


def scheme_of(request: HttpRequest) -> Scheme:
    return "wss" if request.is_secure() else "ws"


@cache
def content() -> dict[str, Any]:
    """Made once. Only the address differs, and who asks may make up as many names and ports as they like."""
    return document((*CHANNELS, SIGNALS), "localhost")


@require_safe
def asyncapi(request: HttpRequest) -> HttpResponseBase:
    here = servers(request.get_host(), scheme_of(request))
    return answer_document(request, encode_document(content() | {"servers": here}))
