"""POST /ingest/ticks."""

import asyncio
from collections.abc import Mapping
from typing import Any, TypeVar, cast

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from core.addresses import address_of
from core.contract.answers import Answer
from core.deadlines import patient
from core.viewset import ApiViewSet
from market import runtime
from serving.http.connections import note_known

from .intake import read, take
from .keys import MAX_BYTES, InvalidMessage, PushSource, TooLarge, TooSlow, identify, sent_key


class IngestKeyAuthentication(BaseAuthentication):
    async def authenticate(self, request: Request) -> tuple[PushSource, None]:  # type: ignore[override]
        scope = request.scope  # type: ignore[attr-defined]
        source = await identify(sent_key(scope), address_of(scope))
        note_known(scope)
        return source, None

    def authenticate_header(self, request: Request) -> str:
        return "Bearer"

    def log_fields(self, request: Request) -> Mapping[str, object]:
        source = cast(PushSource | None, request.user)
        return {} if source is None else {"source": source.name}


class TickViewSet(ApiViewSet):
    """Tiers and rate limits do not apply."""

    authentication_classes = (IngestKeyAuthentication,)
    throttle_classes = ()
    BODY_WITHIN_S = patient(10.0)

    def options(self, request: Request, *args: Any, **kwargs: Any) -> Answer:  # type: ignore[override]
        """Not for browsers of other sites."""
        return Answer(b"", {"Allow": ", ".join(self.allowed_methods)}, status=204)

    async def create(self, request: Request) -> Answer:
        # MetaTrader's StringToCharArray ends a text with a zero.
        text = (await read_body(request, self.BODY_WITHIN_S)).rstrip(b"\0")
        return Answer(await take(cast(PushSource, request.user), read(text), runtime.push))


Body = TypeVar("Body", bytes, bytearray)


async def read_body(request: Request, within_s: float) -> bytes:
    """The whole body, or a refusal as soon as it is too much or too slow."""
    receive = getattr(request, "receive", None)
    if receive is None:
        # Django's own handler has already read it.
        return within_bounds(request.read(MAX_BYTES + 1))
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


def within_bounds(body: Body) -> Body:
    if len(body) > MAX_BYTES:
        raise TooLarge("bytes", MAX_BYTES)
    return body
