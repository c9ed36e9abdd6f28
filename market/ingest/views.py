"""POST /ingest/ticks."""

from __future__ import annotations

from typing import Any

from django.http import HttpRequest

from accounts.api import Answer, ApiViewSet, encode, header, scope_of
from accounts.exceptions import MethodNotAllowed
from accounts.hosts import check_host
from market import services

from .door import read, take
from .handshake import address_of, sent_key
from .refusals import MAX_BYTES, InvalidMessage, TooLarge
from .ring import PushSource, identify

METHODS = "POST, OPTIONS"


class TickViewSet(ApiViewSet):
    """Behind a door of its own: an ingest key, no tier and no window."""

    source: PushSource

    async def _respond(self, request: HttpRequest, headers: dict[str, str], kwargs: dict[str, Any]) -> Answer:
        if request.method == "OPTIONS":
            return Answer(b"", {"Allow": METHODS}, status=204)
        scope = scope_of(request)
        self.source = await identify(sent_key(scope), address_of(scope))
        check_host(header(request, b"host"), scope["http_version"])
        if request.method != "POST":
            error = MethodNotAllowed("This path answers POST and OPTIONS.")
            error.headers["Allow"] = METHODS
            raise error
        return await self.take(request)

    async def take(self, request: HttpRequest) -> Answer:
        # MetaTrader's StringToCharArray ends a text with a zero.
        text = (await read_body(request)).rstrip(b"\0")
        return Answer(encode(await take(self.source, read(text), services.push)))


async def read_body(request: HttpRequest) -> bytes:
    """The whole body, or a refusal as soon as it is too much."""
    receive = getattr(request, "receive", None)
    if receive is None:
        # Django's own handler has read it before anybody asked.
        return within_bounds(request.read(MAX_BYTES + 1))
    body = b""
    while (message := await receive())["type"] == "http.request":
        body = within_bounds(body + message.get("body", b""))
        if not message.get("more_body"):
            return body
    raise InvalidMessage("The body ended early.")


def within_bounds(body: bytes) -> bytes:
    if len(body) > MAX_BYTES:
        raise TooLarge("bytes", MAX_BYTES)
    return body
