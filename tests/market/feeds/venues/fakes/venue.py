"""What the conformance suite asks of a fake venue: a local server that speaks a real one's protocol.

A new adapter joins with one such class, and one line in tests/market/feeds/conftest.py."""

from __future__ import annotations

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, ClassVar, Self, TypeVar

from core.clock import now_ms as market_ms
from market.engine.feeds.feed import FeedPace
from market.engine.venues.venue_feed import VenueFeed
from market.engine.venues.venue_history import VenueTrade
from tests.factories import NOON
from tests.patience import PATIENCE_S

NOON_MS = int(NOON.timestamp()) * 1000
V = TypeVar("V", bound=VenueFeed)
QUICK: dict[str, Any] = {"first_retry_s": 0.001, "longest_retry_s": 0.01, "say_gap_s": 0.0}
HOSTILE = [
    b"{",
    b"null",
    b"[]",
    b"{}",
    b"\xff\xfe\x00",
    b'{"type":"\xff","channel":"\xff","stream":"\xff"}',
    b'{"x":' + b"[" * 30_000 + b"]" * 30_000 + b"}",
    b"1" * 5_000,
    b'"' + b"A" * 30_000 + b'"',
]


def make_pace(**changes: Any) -> FeedPace:
    return FeedPace(**(QUICK | changes))


@dataclass
class Visit:
    """One connection to a fake venue."""

    asked: set[str] = field(default_factory=set)
    """The venue's names of what was subscribed to, on every channel that it takes."""
    is_closed_well: bool = False
    """The client said goodbye in the protocol's way."""
    is_over: bool = False


class FakeVenue(ABC):
    feed_class: ClassVar[type[VenueFeed]]
    symbols: ClassVar[dict[str, str]]
    """Two symbols by ours: the first named by the venue's rule, the second by an operator."""
    has_trades: ClassVar[bool] = True
    has_history: ClassVar[bool] = True
    gives_quote_times: ClassVar[bool] = True
    numbers_quotes: ClassVar[bool] = False
    malformed: ClassVar[list[bytes]]
    """Messages of the venue's shape that make no sense, one fault each."""
    hostile: ClassVar[list[bytes]] = HOSTILE

    def __init__(self) -> None:
        self.visits: list[Visit] = []
        self.unknown: set[str] = set()
        """Names that a subscription is refused for."""
        self.sent_after_asking: list[bytes] = []
        """Sent as soon as a connection has asked for what it wants."""
        self.bars: dict[str, list[tuple[int, float]]] = {}
        """History by the venue's name: when a minute opened (ms), and its price."""
        self.trades: dict[str, list[VenueTrade]] = {}
        """What it tells of its trades one by one, by its name."""
        self.has_broken_history = False
        self.may_tell_history = asyncio.Event()
        """Cleared, its history is asked for and does not come."""
        self.may_tell_history.set()
        self.history_asked: list[str] = []
        self.now_ms: Callable[[], int] = market_ms
        """Its own clock; a feed that is made shows its."""
        self._changed = asyncio.Event()

    @abstractmethod
    async def start(self) -> None: ...
    @abstractmethod
    async def stop(self) -> None: ...
    @abstractmethod
    def make_feed(self, symbols: dict[str, str] | None = None, **pace: Any) -> VenueFeed: ...

    @property
    @abstractmethod
    def settings(self) -> dict[str, str]:
        """What an operator would set to follow this venue."""

    @property
    def feed_name(self) -> str:
        return self.feed_class.venue.lower()

    @abstractmethod
    def quote(self, name: str, bid: float, ask: float, time_ms: int, seq: int = 1) -> bytes: ...
    def standing(self, ours: str, bid: float, ask: float, time_ms: int) -> list[bytes]:
        """The first that a connection says of a price, if it then says from when it is."""
        return []

    @abstractmethod
    def trade(self, name: str, price: float, size: float, side: int, time_ms: int, seq: int) -> bytes: ...
    @abstractmethod
    def heartbeat(self) -> bytes: ...

    def clock(self) -> bytes:
        """Says the time, where quotes do not."""
        return self.heartbeat()

    @abstractmethod
    async def send(self, *messages: bytes) -> None:
        """To the latest connection."""

    @abstractmethod
    async def close(self) -> None:
        """End the latest connection in order."""

    @abstractmethod
    async def reset(self) -> None:
        """Tear the latest connection."""

    @abstractmethod
    def hush(self) -> None:
        """From now on every connection is half open: nothing is sent and nothing answered."""

    def follow(self, feed: V) -> V:
        """Its clock is the feed's, whatever a test sets that to."""
        self.now_ms = lambda: feed.now_ms()
        return feed

    @property
    def visit(self) -> Visit:
        return self.visits[-1]

    async def visited(self, count: int = 1, names: int = 2) -> Visit:
        """When the connection of this number has asked for so many symbols."""
        async with asyncio.timeout(PATIENCE_S):
            while len(self.visits) < count or len(self.visit.asked) < names:
                await self._change()
        return self.visit

    async def asked_for_history(self, count: int = 1) -> None:
        async with asyncio.timeout(PATIENCE_S):
            while len(self.history_asked) < count:
                await self._change()

    async def left(self, visit: Visit) -> Visit:
        async with asyncio.timeout(PATIENCE_S):
            while not visit.is_over:
                await self._change()
        return visit

    def note(self) -> None:
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()
