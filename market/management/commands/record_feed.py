import asyncio
import math
import sys
from argparse import ArgumentParser, ArgumentTypeError
from contextlib import ExitStack, suppress
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from instruments.sources import DEMO, PUSH
from market.engine.feeds.feed import MarketFeed
from market.engine.feeds.recorder import TickRecorder, record
from market.engine.feeds.registry import FEEDS, make_feed
from market.engine.feeds.venues.venue_feed import VenueFeed
from market.management.terminal import find_instrument

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
