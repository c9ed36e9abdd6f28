"""The socket /ws/signals."""

from msgspec import UNSET, UnsetType

from core.clock import now_ms
from market.streams.market_streams import is_known
from market.streams.protocol import replies
from market.streams.protocol.messages import AnyMessage, Subscribe
from market.streams.sessions.session import StreamSession

from .signal_stream import signals, since_of


class SignalsConsumer(StreamSession):
    stream = signals

    _goes_on_after: int | None = None
    """The position after which a returning client continues."""

    async def take(self, message: AnyMessage) -> None:
        self._goes_on_after, missed = None, None
        if isinstance(message, Subscribe) and message.since is not UNSET:
            await self.identity.show(message.api_key)
            self._goes_on_after = await signals.find(message.since)
            if self._goes_on_after is not None:
                # Before the reply, because a client that was promised a continuation must get it.
                missed = await signals.look_back(self._goes_on_after)
        await super().take(message)
        if missed is not None and self.is_open:
            topics, variant = signals.topics_of(self.subscriptions), signals.variant_of(self.subscriptions)
            await signals.replay(self.subscriber, missed, topics, variant)

    def subscribe(self, message: Subscribe) -> None:
        wanted = self.subscriptions
        change = wanted.subscribe(message, is_known)
        self.say(
            replies.subscribed(
                signals.kind.name,
                wanted.symbols,
                change.rejected,
                now_ms(),
                message.id,
                since=since_of(signals.position if self._goes_on_after is None else self._goes_on_after),
                unrecovered=self._unrecovered(message),
            )
        )
        if self._goes_on_after is None:
            self.listen()

    def _unrecovered(self, message: Subscribe) -> list[str] | UnsetType:
        if message.since is UNSET:
            return UNSET
        return self.subscriptions.symbols if self._goes_on_after is None else []
