"""Records what a venue sends: its ticks, and its frames as they came."""

import asyncio
import logging
import math
import sys
from argparse import ArgumentParser, ArgumentTypeError
from collections import Counter
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from typing import Any, BinaryIO

from django.core.management.base import BaseCommand, CommandError

from core.background import first_done
from core.clock import now_ms
from instruments.catalogue import catalogue
from instruments.facts import DEMO, FEEDS, PUSH, InstrumentFacts
from market.engine.feeds.supervisor import make_feed
from market.engine.files.format import encode
from market.engine.venues.venue_feed import VenueFeed
from market.management.terminal import find_instrument
from market.prices.candles import PriceBar
from market.prices.records import Tick

from ...engine.feeds.feed import MarketFeed, Unheard

# A feed's ticks into a file of our own format, instead of into the engine.
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
        """The number of ticks by their delay in milliseconds."""
        self.fault: OSError | None = None
        """What kept it from writing."""
        self.ended = asyncio.Event()
        """The reader is gone, or the disk is full."""

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

    def note_time(self, source_ms: int, ahead_ms: int) -> None:
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
    """Until the feed ends, the time is over or the reader is gone."""
    await first_done(feed.run(recorder), recorder.ended.wait(), timeout_s=seconds)


STATUS_S = 0.5


class Command(BaseCommand):
    help = "Record a feed's ticks as JSON lines, which import_ticks and the replay feed read."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("feed", choices=[name for name in FEEDS if name != PUSH])
        parser.add_argument("--symbols", nargs="+", help="Instead of those whose source or fallback it is.")
        parser.add_argument("--seconds", type=duration, help="End after this time instead of with Ctrl-C.")
        parser.add_argument(
            "--raw", action="store_true", help="The venue's messages as they come, each after its time."
        )
        parser.add_argument("--output", help="A file to append to, instead of standard output.")

    def handle(
        self,
        *,
        feed: str,
        symbols: list[str] | None,
        seconds: float | None,
        output: str | None,
        raw: bool,
        **options: Any,
    ) -> None:
        chosen = [find_instrument(symbol) for symbol in symbols] if symbols else followed(feed)
        if not chosen:
            raise CommandError(
                f"No instrument has {feed} as its source or fallback. Name some with --symbols."
            )
        with ExitStack() as opened, suppress(KeyboardInterrupt):
            try:
                out = opened.enter_context(open(output, "ab")) if output else sys.stdout.buffer
            except OSError as error:
                raise CommandError(f"{output} cannot be written: {error.strerror}.") from None
            recorder, made = TickRecorder(out, is_raw=raw), make_feed(feed, chosen)
            if raw:
                if not isinstance(made, VenueFeed):
                    raise CommandError(f"{feed} is no venue and sends no messages.")
                made.hear_raw = recorder.hear_raw
            asyncio.run(self.record(made, recorder, seconds))

    async def record(self, feed: MarketFeed, recorder: TickRecorder, seconds: float | None) -> None:
        status = asyncio.create_task(show(recorder))
        try:
            await record(feed, recorder, seconds)
        finally:
            status.cancel()
            sys.stderr.write(f"{line(recorder)}\n")
        try:
            if recorder.fault is not None:
                raise recorder.fault
        except BrokenPipeError:
            raise
        except OSError as error:
            raise CommandError(f"The recording cannot be written: {error.strerror}.") from None
        if recorder.is_empty:
            raise CommandError(f"Nothing was recorded: {recorder.why or 'nothing came'}.")


def duration(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise ArgumentTypeError(f"{text!r} is no number of seconds: an hour is 3600")
    return seconds


def followed(feed: str) -> list[InstrumentFacts]:
    """The active instruments whose source or fallback it is; the demo market prices those without one."""
    catalogue.load_now()
    return [
        facts
        for facts in catalogue.active()
        if feed in ((facts.source or DEMO).partition(":")[0], facts.fallback.partition(":")[0])
    ]


async def show(recorder: TickRecorder) -> None:
    while sys.stderr.isatty():
        sys.stderr.write(f"\r\033[K{line(recorder)}\r")
        sys.stderr.flush()
        await asyncio.sleep(STATUS_S)


def line(recorder: TickRecorder) -> str:
    refused = recorder.refused.total()
    ticks = f"{recorder.ticks:,} {'tick' if recorder.ticks == 1 else 'ticks'} recorded"
    late = ""
    if recorder.ticks:
        half, most = recorder.late_ms(0.5), recorder.late_ms(0.99)
        late = f", half within {half} ms and 99% within {most} ms of their own time"
    return ticks + late + (f", {refused:,} messages made none" if refused else "")
