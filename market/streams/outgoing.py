"""What the hub is given to publish: one frame, in the variants that clients asked for. Pure."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

from msgspec.structs import replace

from market.prices.records import Absorbed, Taken

from .backlog import Latest
from .frames import absorption, extended, order_flow_tick, price_tick
from .messages import Wish
from .protocol import conflated

# The bits of a variant.
SEQ, SENT = 1, 2
# Volumes are whole hundred-millionths: their sums are rounded to these.
VOLUME_DIGITS = 8


def variant_of(features: Collection[Wish]) -> int:
    return SEQ * ("seq" in features) + SENT * ("lag" in features)


class Outgoing:
    __slots__ = ("frame", "sent_ms", "seq")

    def __init__(self, frame: bytes, seq: int, sent_ms: int) -> None:
        self.frame, self.seq, self.sent_ms = frame, seq, sent_ms

    def payload(self, variant: int) -> bytes:
        if not variant:
            return self.frame
        return extended(
            self.frame, self.seq if variant & SEQ else None, self.sent_ms if variant & SENT else None
        )


class OutgoingPrice(Outgoing):
    """It can stand for the ticks before it, for clients that asked for the latest alone."""

    __slots__ = ("digits", "taken")

    def __init__(self, taken: Taken, digits: int, sent_ms: int) -> None:
        super().__init__(price_tick(taken, digits), taken.seq, sent_ms)
        self.taken, self.digits = taken, digits

    def over(self, older: Latest) -> OutgoingPrice:
        before = cast(OutgoingPrice, older).taken
        volume = round(before.volume + self.taken.volume, VOLUME_DIGITS)
        return OutgoingPrice(replace(self.taken, volume=volume), self.digits, self.sent_ms)

    def notice(self, dropped: int) -> bytes:
        return conflated(self.taken.symbol, dropped)


def outgoing_flow(record: Taken | Absorbed, sent_ms: int) -> Outgoing | None:
    """None for a tick that is none of the order flow's."""
    frame = absorption(record) if isinstance(record, Absorbed) else order_flow_tick(record)
    return None if frame is None else Outgoing(frame, record.flow_seq, sent_ms)
