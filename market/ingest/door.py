"""The one way in for ticks that are pushed, whatever brought them here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from msgspec import Raw

from market import services
from market.prices.ticks import Tick

from .messages import Refused, Unreadable, read_batch, read_items, read_message, without
from .refusals import MAX_TICKS, InvalidMessage, TooLarge, sentence
from .ring import PushSource

Push = Callable[[str, list[Tick]], Awaitable[list[str | None]]]


class Verdict(msgspec.Struct):
    """What became of a message: how many ticks were taken, and why each of the others was not."""

    accepted: int
    rejected: list[Refused]


def read(text: bytes) -> list[Raw] | dict[str, Raw]:
    try:
        return read_message(text)
    except Unreadable as error:
        raise InvalidMessage(str(error)) from None


async def take(source: PushSource, message: list[Raw] | dict[str, Raw], push: Push) -> Verdict:
    try:
        items = read_items(message)
    except Unreadable as error:
        raise InvalidMessage(str(error)) from None
    if len(items) > MAX_TICKS:
        raise TooLarge("ticks", MAX_TICKS)
    batch = read_batch(items, services.now_ms())
    if source.symbols:
        batch = without(batch, source.symbols, "symbol_not_allowed", sentence("symbol_not_allowed"))
    # An empty message says that the source is alive; one in which nothing can be used says nothing.
    codes = await push(source.origin, batch.ticks) if batch.ticks or not items else []
    refused = [
        Refused(index, code, sentence(code))
        for index, code in zip(batch.indexes, codes, strict=True)
        if code is not None
    ]
    rejected = sorted(batch.refused + refused, key=lambda tick: tick.index)
    return Verdict(len(items) - len(rejected), rejected)
