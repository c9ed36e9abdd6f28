"""A client that was away and comes back to a stream."""

from __future__ import annotations

from core.clock import now_ms
from market.streams.protocol.messages import Resume, Subscribe
from market.streams.protocol.subscriptions import Subscriptions
from market.streams.resume import ReplayAllowance
from market.streams.stream import NumberedStream


def goes_on(stream: NumberedStream, epoch: str, position: int) -> bool:
    """Whether a client that had this frame of EURUSD last is told that it missed nothing."""
    subscribed = Subscriptions()
    message = Subscribe(symbols=["EURUSD"], resume=Resume(epoch, {"EURUSD": position}))
    change = subscribed.subscribe(message, lambda _: True)
    reply, _ = stream.open(message, subscribed, change, now_ms(), ReplayAllowance())
    return reply.recovered is True
