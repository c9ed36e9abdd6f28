"""A client that was away and comes back to a stream."""

from __future__ import annotations

from msgspec import UNSET

from core.clock import now_ms
from market.streams.protocol.messages import Resume, Subscribe
from market.streams.protocol.subscriptions import Subscriptions
from market.streams.resume import ReplayAllowance
from market.streams.stream import NumberedStream


def goes_on(stream: NumberedStream, epoch: str, position: int) -> bool:
    """Whether a client that had this frame of EURUSD last, of its minutes on candles, is told that it missed
    nothing."""
    subscribed, has_timeframes = Subscriptions(), stream.kind.has_timeframes
    message = Subscribe(
        symbols=["EURUSD"],
        timeframes=frozenset({"1m"}) if has_timeframes else UNSET,
        resume=Resume(epoch, {"EURUSD/1m" if has_timeframes else "EURUSD": position}),
    )
    change = subscribed.subscribe(message, lambda _: True)
    reply, _ = stream.open(message, subscribed, change, now_ms(), ReplayAllowance())
    return reply.recovered is True
