"""POST /ingest/ticks."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from django.http import HttpRequest

from core.addresses import address_of
from core.contract.answers import Answer
from core.contract.errors import MethodNotAllowed
from core.deadlines import patient
from core.plain_json import encode
from core.viewset import ApiViewSet
from market import runtime
from serving.http.connections import note_known

from .intake import read, take
from .keys import MAX_BYTES, InvalidMessage, PushSource, TooLarge, TooSlow, identify, sent_key

METHODS = "POST, OPTIONS"


class TickViewSet(ApiViewSet):
    """Asks for an ingest key. Tiers and rate limits do not apply."""

    BODY_WITHIN_S = patient(10.0)
    source: PushSource

    async def respond(self, request: HttpRequest, headers: dict[str, str], kwargs: dict[str, Any]) -> Answer:
        if request.method == "OPTIONS":
            return Answer(b"", {"Allow": METHODS}, status=204)
        return await super().respond(request, headers, kwargs)

    def known_by(self) -> Mapping[str, object]:
        source: PushSource | None = getattr(self, "source", None)
        return {} if source is None else {"source": source.name}

    async def admit(self, request: HttpRequest, headers: dict[str, str]) -> None:
        self.source = await identify(sent_key(self.scope), address_of(self.scope))
        note_known(self.scope)

    def action_for(self, method: str) -> Callable[..., Any]:
        if method != "POST":
            error = MethodNotAllowed("This path answers POST and OPTIONS.")
            error.headers["Allow"] = METHODS
            raise error
        return self.take

    async def take(self) -> Answer:
        # MetaTrader's StringToCharArray ends a text with a zero.
        text = (await read_body(self.request, self.BODY_WITHIN_S)).rstrip(b"\0")
        return Answer(encode(await take(self.source, read(text), runtime.push)))


async def read_body(request: HttpRequest, within_s: float) -> bytes:
    """The whole body, or a refusal as soon as it is too much or too slow."""
    receive = getattr(request, "receive", None)
    if receive is None:
        # Django's own handler has already read it.
        return bytes(within_bounds(request.read(MAX_BYTES + 1)))
    try:
        async with asyncio.timeout(within_s):
            return await received(receive)
    except TimeoutError:
        raise TooSlow from None


async def received(receive: Any) -> bytes:
    body = bytearray()
    while (message := await receive())["type"] == "http.request":
        body += message.get("body", b"")
        within_bounds(body)
        if not message.get("more_body"):
            return bytes(body)
    raise InvalidMessage("The body ended early.")


def within_bounds(body: bytes | bytearray) -> bytes | bytearray:
    if len(body) > MAX_BYTES:
        raise TooLarge("bytes", MAX_BYTES)
    return body
