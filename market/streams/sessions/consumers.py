"""What follows a subscribe on /ws/market and /ws/orderflow."""

from itertools import chain
from typing import ClassVar

from core.clock import now_ms
from core.plain_json import encode
from instruments.catalogue import catalogue
from market.runtime import is_heard
from market.streams import market_streams
from market.streams.hub.slow_readers import replay
from market.streams.protocol.messages import ALL, Subscribe
from market.streams.protocol.replies import Notice
from market.streams.resume import ReplayAllowance
from market.streams.stream import NumberedStream
from serving.websocket.connection import WebSocketConnection
from serving.websocket.framing import frame

from .session import StreamSession


def is_known(symbol: str) -> bool:
    return catalogue.find(symbol) is not None


class NumberedConsumer(StreamSession):
    stream: ClassVar[NumberedStream]

    def join(self, connection: WebSocketConnection) -> None:
        super().join(connection)
        self._replayed = ReplayAllowance()

    def subscribe(self, message: Subscribe) -> None:
        subscriber, wanted, now = self.subscriber, self.subscriptions, now_ms()
        wanted.drop({symbol for symbol in wanted.symbols if symbol != ALL and not is_known(symbol)})
        change = wanted.subscribe(message, is_known)
        reply, missed = self.stream.open(message, wanted, change, now, self._replayed)
        subscriber.wants_latest = "latest" in wanted.features and self.stream.kind.can_conflate
        self.listen()
        replay(self.stream.hub.slow, subscriber, chain([frame(encode(reply))], missed))
        if change.joined and not is_heard():
            self.say(Notice(code="stale", symbols=change.joined, time=now))

    def drop(self, gone: frozenset[str]) -> None:
        if not gone.isdisjoint(self.subscriptions.symbols):
            self.subscriptions.drop(gone)
            self.listen()


class MarketConsumer(NumberedConsumer):
    stream = market_streams.prices


class OrderFlowConsumer(NumberedConsumer):
    stream = market_streams.order_flow
