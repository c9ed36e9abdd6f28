"""A feed's ticks into a file of our own format, instead of into the engine."""

import asyncio
import logging
from collections import Counter
from collections.abc import Sequence
from typing import BinaryIO

from core.background import first_done
from core.clock import now_ms
from market.engine.files.recording import encode
from market.prices.candles import PriceBar
from market.prices.records import Tick

from .feed import MarketFeed, Unheard

logger = logging.getLogger(__name__)


class TickRecorder:
    """The receiver of a recorded feed: everything it sends, good or bad."""

    def __init__(self, out: BinaryIO, *, is_raw: bool = False) -> None:
        """`is_raw` where the messages are recorded that ticks are made of."""
        self._out, self._is_raw = out, is_raw
        self.is_empty = True
        self.why = ""
        """Why the feed was last lost."""
        self.ticks = 0
        self.refused: Counter[str] = Counter()
        self._late: Counter[int] = Counter()
        """How many ticks came so many milliseconds after their own time."""
        self.fault: OSError | None = None
        """What kept it from writing."""
        self.ended = asyncio.Event()
        """Nobody reads any more, or the disk is full."""

    def take(self, ticks: list[Tick]) -> None:
        if not ticks or self.fault is not None:
            return
        if not self._is_raw:
            self._write(encode(ticks))
        self.ticks += len(ticks)
        at_ms = now_ms()
        self._late.update(at_ms - tick.time_ms for tick in ticks)

    def hear_raw(self, message: bytes, at_ms: int) -> None:
        """On a line of its own, after the time of its receipt."""
        if self.fault is None:
            self._write(b"%d %s\n" % (at_ms, message.replace(b"\n", b" ")))

    def _write(self, lines: bytes) -> None:
        try:
            self._out.write(lines)
            self._out.flush()
            self.is_empty = False
        except OSError as error:
            self.fault = error
            self.ended.set()

    def late_ms(self, share: float) -> int:
        """By how much this share of the ticks was late at most, by their own time."""
        left = share * self.ticks
        for late_ms in sorted(self._late):
            left -= self._late[late_ms]
            if left <= 0:
                return late_ms
        return 0

    def begun(self) -> None:
        """What was before is not recorded."""

    def told(self, told_ms: int, ahead_ms: int) -> None:
        """Nothing is closed here."""

    def lost(self, why: str) -> None:
        self.why = why
        logger.warning("The feed is lost: %s", why)

    def refuse(self, reason: str, what: str = "", symbols: Sequence[str] = ()) -> None:
        self.refused[reason] += 1

    def missing(self) -> dict[str, int]:
        return {}

    def unheard(self) -> dict[str, Unheard]:
        return {}

    def heal(self, symbol: str, trades: list[Tick], since_ms: int) -> None:
        """What was missed is not recorded."""

    def backfill(self, symbol: str, minutes: list[PriceBar], basis: str) -> None:
        """Candles are no ticks."""


async def record(feed: MarketFeed, recorder: TickRecorder, seconds: float | None = None) -> None:
    """Until the feed ends, the time is over or nobody reads any more."""
    await first_done(feed.run(recorder), recorder.ended.wait(), timeout_s=seconds)
