"""What the engine and a feed ask of each other, how long feeds wait, and ticks that await their history."""

import asyncio
import random
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from market.prices.candles import PriceBar
from market.prices.records import Tick


class Unheard(NamedTuple):
    since_ms: int
    known: int
    """The number of the last trade that counts since then; 0 if none does."""


class FeedReceiver(Protocol):
    """What a feed hands its ticks to: the engine, or a recorder. Nothing here waits or raises."""

    def take(self, ticks: list[Tick]) -> None:
        """What the source sent, in its order; an empty list says that it is alive."""

    def begun(self) -> None:
        """A connection begins in the middle of a stream: earlier messages were missed."""

    def note_time(self, source_ms: int, ahead_ms: int) -> None:
        """The latest time of the source's own clock; everything before it is passed on. Our clock is
        `ahead_ms` ahead of it."""

    def lost(self, why: str) -> None:
        """The source is gone or silent: "the connection was closed (1006)"."""

    def refuse(self, reason: str, what: str = "", symbols: Sequence[str] = ()) -> None:
        """Count a message that made no tick: "malformed", "unknown_symbol". `what` is a sentence for
        staff who have to do something about it; until then nothing comes for `symbols`."""

    def missing(self) -> dict[str, int]:
        """For each symbol that lacks closed minutes up to now, when the first of them opened (ms)."""

    def unheard(self) -> dict[str, Unheard]:
        """For each symbol whose open minutes lack trades, since when."""

    def heal(self, symbol: str, trades: list[Tick], since_ms: int) -> None:
        """All trades that were missed since then, in their order, with their numbers."""

    def backfill(self, symbol: str, minutes: list[PriceBar], basis: str) -> None:
        """Closed 1m candles from the source's own history, oldest first; those already known stay."""


class MarketFeed(Protocol):
    """Made from its symbols and its settings; it reconnects on its own."""

    async def run(self, receiver: FeedReceiver) -> None:
        """Until cancelled, or until there is nothing more to come. Closes what it opened."""


@dataclass(frozen=True, kw_only=True)
class FeedPace:
    open_s: float = 10.0
    close_s: float = 2.0
    silent_s: float = 15.0
    """Without any message for this long a connection is given up. Venues send heartbeats or answer probes."""
    probe_s: float = 1.0
    """A WebSocket venue is sent a probe if nothing else was sent to it for this long."""
    say_gap_s: float = 0.25
    """Between two messages to a venue; Binance cuts off clients that send more than five a second."""
    first_retry_s: float = 1.0
    longest_retry_s: float = 60.0
    steady_s: float = 30.0
    """A connection that held this long was a good one: the next begins with the shortest wait again."""
    history_s: float = 10.0
    history_at_once: int = 4
    clock_s: float = 5.0
    """How long filling the past waits for the venue's time."""
    held_at_most: int = 100_000
    """This many ticks may wait for the history; the rest is left with the venue until then."""
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep
    chance: Callable[[], float] = random.random

    def retry_s(self, failures: int) -> float:
        """Doubles up to the cap; shortened by up to a half, so that clients do not come back as one."""
        # No exponent beyond what a float can hold, however long the venue stays away.
        full_s = min(self.longest_retry_s, self.first_retry_s * 2.0 ** min(failures, 30))
        return full_s * (1.0 - self.chance() / 2)


# Between two batches the event loop does other things.
AT_ONCE = 500


class HeldTicks:
    """Ticks that wait until the past is filled. Candles only go forward: a tick, or even a sign of life,
    would close minutes whose history is on its way."""

    def __init__(self, receiver: FeedReceiver, at_most: int, before: Sequence[Tick] = ()) -> None:
        """`before` is what another connection left behind."""
        self._receiver = receiver
        self._at_most = at_most
        self._ticks = list(before)
        self._doubted: list[Tick] = []
        self.source_ms = self._ahead_ms = 0
        self._was_heard = self._is_over = False
        self.is_full = False
        self.clocked, self.released = asyncio.Event(), asyncio.Event()

    def take(self, ticks: list[Tick], *, is_doubted: bool = False) -> None:
        """`is_doubted` while the offset of the clocks that date them is unknown."""
        self._doubted += ticks
        if is_doubted:
            return
        ticks, self._doubted = self._doubted, []
        if self._is_over:
            self._receiver.take(ticks)
        else:
            self._was_heard = True
            self._ticks += ticks
            self.is_full = len(self._ticks) >= self._at_most

    def tell(self, source_ms: int, ahead_ms: int) -> None:
        """Queue a call of `note_time` among the ticks."""
        self.source_ms, self._ahead_ms = source_ms, ahead_ms
        self.clocked.set()
        # While ticks are held, minutes wait for the last of them.
        self._receiver.note_time(source_ms if self._is_over else 0, ahead_ms)

    async def release(self) -> None:
        """Pass on what was held, then everything as it arrives."""
        if self._was_heard and not self._ticks:
            self._receiver.take([])
        while self._ticks:
            first, self._ticks = self._ticks[:AT_ONCE], self._ticks[AT_ONCE:]
            self._receiver.take(first)
            await asyncio.sleep(0)
        # No await since the last look: nothing came between.
        if self.source_ms:
            self._receiver.note_time(self.source_ms, self._ahead_ms)
        self._is_over, self.is_full = True, False
        self.released.set()

    def leave(self, awaited: Collection[str]) -> list[Tick]:
        """The connection is over: pass on what has no history to wait for, and return the rest."""
        ticks, self._ticks = self._ticks, []
        if free := [tick for tick in ticks if tick.symbol not in awaited]:
            self._receiver.take(free)
        return [tick for tick in ticks if tick.symbol in awaited]
