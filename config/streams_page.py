"""The streams' document as a page: connect, say, hear, resume, and what is refused."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import render
from django.views.decorators.http import require_safe

from accounts.models import Tier
from market.streams.asyncapi import ANSWERS
from market.streams.protocol import CONTROLS

from .asyncapi import content, scheme_of
from .message_words import Json, Message, described

EXAMPLES = (
    ("Subscribe", '{"action": "subscribe", "symbols": ["BTCUSD"], "api_key": "KEY"}'),
    ("List", '{"action": "list", "id": 1}'),
    ("Ping", '{"action": "ping", "id": 2}'),
    ("Unsubscribe", '{"action": "unsubscribe", "symbols": ["BTCUSD"]}'),
    ("A mistake", '{"action": "subscribe", "symbols": "BTCUSD", "api_key": "KEY"}'),
)


class Stream(NamedTuple):
    name: str
    title: str
    path: str
    about: str
    data: list[Message]


def streams(document: Json) -> list[Stream]:
    found = []
    for name, channel in document["channels"].items():
        references = document["operations"][f"{name}Data"]["messages"]
        data = [described(each["$ref"].rsplit("/", 1)[1], document) for each in references]
        about = channel["description"].replace("`", "")
        found.append(Stream(name, channel["title"], channel["address"], about, data))
    return found


@cache
def words() -> dict[str, Any]:
    """All of the page that is the same for everybody."""
    document = content()
    return {
        "streams": streams(document),
        "said": [described(kind.__name__, document) for kind in ANSWERS],
        "told": [described(kind.__name__, document) for kind in CONTROLS],
        "features": document["x-features"],
        "limits": document["x-limits"],
        "refusals": document["x-refusals"],
        "closes": unannounced(document),
    }


def unannounced(document: Json) -> list[Json]:
    """Close codes that come without an error before them."""
    announced = {refusal["close"] for refusal in document["x-refusals"]}
    return [close for close in document["x-close-codes"] if close["close"] not in announced]


@require_safe
def streams_page(request: HttpRequest) -> HttpResponse:
    url = f"{scheme_of(request)}://{request.get_host()}/ws/market"
    page = {**words(), "url": url, "tiers": Tier.objects.all(), **console(request)}
    return render(request, "docs/streams.html", page)


def console(request: HttpRequest) -> dict[str, Any]:
    """What the page's own socket needs: its key, where it may have one."""
    has_page_key = settings.DEMO or request.user.is_authenticated
    config = {"csrf": get_token(request) if has_page_key else "", "hasPageKey": has_page_key}
    return {"console": config, "has_page_key": has_page_key, "examples": EXAMPLES}
