"""/ws/signals."""

from __future__ import annotations

from msgspec import UNSET, UnsetType

from core.clock import now_ms
from market.streams.protocol import replies
from market.streams.protocol.messages import AnyMessage, Subscribe, Unsubscribe
from market.streams.sessions.consumers import StreamConsumer, is_known

from .signal_stream import place, signals, topics_of, variant_of


class SignalsConsumer(StreamConsumer):
    stream = signals

    _place: int | None = None
    """After which the client goes on, if it was away."""

    async def take(self, message: AnyMessage) -> None:
        self._place, missed = None, None
        if isinstance(message, Subscribe) and message.since is not UNSET:
            await self._identity.show(message.api_key)
            self._place = await signals.find(message.since)
            if self._place is not None:
                # Before the reply: a client that is told it goes on must not learn that nobody can read it.
                missed = await signals.look_back(self._place)
        await super().take(message)
        if missed is not None and self._subscriber is not None:
            wanted = self._subscriptions
            await signals.replay(self._subscriber, missed, topics_of(wanted), variant_of(wanted))

    def _subscribe(self, message: Subscribe) -> None:
        """Without an await: no frame comes before the reply, and none is missed after it."""
        if self._is_over or self._subscriber is None:
            return
        wanted = self._subscriptions
        change = wanted.subscribe(message, is_known)
        goes_on = replies.Continuation(
            since=place(signals.position if self._place is None else self._place),
            unrecovered=self._unrecovered(message),
        )
        name = signals.kind.name
        self._say(replies.subscribed(name, wanted.symbols, change.rejected, now_ms(), message.id, goes_on))
        if self._place is None:
            signals.move(self._subscriber, topics_of(wanted), variant_of(wanted))
        self._settle_in()

    def _unrecovered(self, message: Subscribe) -> list[str] | UnsetType:
        if message.since is UNSET:
            return UNSET
        return self._subscriptions.symbols if self._place is None else []

    def _unsubscribe(self, message: Unsubscribe) -> None:
        self._subscriptions.unsubscribe(message)
        if self._subscriber is not None:
            signals.move(self._subscriber, topics_of(self._subscriptions), variant_of(self._subscriptions))
        self._say(replies.unsubscribed(self._subscriptions.symbols, now_ms(), message.id))
