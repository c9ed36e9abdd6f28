"""One measurement in a process of its own, told as JSON."""

from __future__ import annotations

import random
import resource
import sys
import time
from collections.abc import Iterator
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from tests.programs.installation import set_up

set_up()

from market.engine import FillTerms  # noqa: E402
from market.prices.records import TickAccepted  # noqa: E402
from signals_feed.closing import Closing  # noqa: E402
from signals_feed.exits import SignalLevels  # noqa: E402
from signals_feed.judging.active_signals import ActiveSignals  # noqa: E402
from signals_feed.judging.reading import SignalToWatch  # noqa: E402
from signals_feed.rules import Quoted  # noqa: E402

from .signals import Closings, Run  # noqa: E402

INSTRUMENTS, TICKS, BATCH, PER_SECOND = 50, 300_000, 200, 5_000
START = 100_000
"""In points, of which each tick moves the price by up to three."""
CLOSED = 1_000


class Publisher:
    """Puts a signal at the market wherever one was closed, so that as many stay active."""

    def __init__(self, active_signals: ActiveSignals) -> None:
        self.active_signals = active_signals
        self.points = [START] * INSTRUMENTS
        self.dice = random.Random(7)  # noqa: S311
        self.published = 0

    def publish(self, time_ms: int) -> None:
        number = self.published
        self.published += 1
        place = number % INSTRUMENTS
        is_buy = self.dice.random() < 0.5
        sign = 1 if is_buy else -1
        # A tenth of a percent to three percent away, as people do.
        risk, reward = self.dice.randint(100, 3_000), self.dice.randint(100, 3_000)
        at = self.points[place]
        levels = SignalLevels(
            "buy" if is_buy else "sell",
            Decimal(at - sign * risk),
            Decimal(at + sign * reward),
            time_ms,
            time_ms + 10**9,
        )
        quote = Quoted(Decimal(at), Decimal(at + 2), time_ms, "e", number)
        self.active_signals.admit([SignalToWatch(UUID(int=number), f"S{place}", place, levels, quote)])

    def ticks(self) -> Iterator[list[TickAccepted]]:
        for first in range(0, TICKS, BATCH):
            batch = []
            for number in range(first, first + BATCH):
                place = number % INSTRUMENTS
                self.points[place] += self.dice.randint(-3, 3)
                bid = float(self.points[place])
                batch.append(
                    TickAccepted(f"S{place}", bid, bid + 2, number * 1000 // PER_SECOND, 1.0, number)
                )
            yield batch


def watch(active: int) -> Run:
    closings: list[Any] = []
    active_signals = ActiveSignals(lambda: "other", closings.append, 0, lambda _: FillTerms(1_000), {})
    publisher = Publisher(active_signals)
    before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(active):
        publisher.publish(0)
    kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kb
    spent_s, hits, at_ms = 0.0, 0, 0
    for batch in publisher.ticks():
        begun_s = time.process_time()
        for tick in batch:
            active_signals.take(tick)
        spent_s += time.process_time() - begun_s
        at_ms = batch[-1].time_ms
        hits += len(closings)
        for _ in closings:
            publisher.publish(at_ms)
        closings.clear()
    return Run(spent_s / TICKS * 1e6, hits / (TICKS / PER_SECOND), kb / max(1, active))


def close() -> Closings:
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from django.utils import timezone

    from core.times import epoch_ms_after
    from signals_feed.closing import close_signals
    from signals_feed.ledger.ledger import signer
    from signals_feed.models import Signal
    from signals_feed.publishing.actions import enter_feed
    from signals_feed.rules import SeenExtremes
    from tests.factories import make_instrument, make_user
    from tests.signals_feed.published_signals import ASK, BID, TERMS

    # As the service does when it starts: each entry is compared with the last checkpoint.
    signer.look(timezone.now())
    instrument = make_instrument()
    user, terms = make_user(), {name: Decimal(price) for name, price in TERMS.items()}
    quote = Quoted(BID, ASK, epoch_ms_after(timezone.now()), "", 1)
    closings = []
    for _ in range(CLOSED):
        signal = Signal(instrument=instrument, user=user, direction="buy", **terms)
        enter_feed(signal, quote)
        closings.append(
            Closing.at_current(signal, "manual", quote, quote.time_ms)._replace(
                seen=SeenExtremes(ASK, BID, 0)
            )
        )
    half = CLOSED // 2
    begun_s = time.perf_counter()
    for closing in closings[:half]:
        close_signals([closing])
    one_s = time.perf_counter() - begun_s
    begun_s = time.perf_counter()
    for first in range(half, CLOSED, 50):
        close_signals(closings[first : first + 50])
    return Closings(half / one_s, half / (time.perf_counter() - begun_s))


if __name__ == "__main__":
    made = watch(int(sys.argv[2])) if sys.argv[1] == "watch" else close()
    sys.stdout.buffer.write(msgspec.json.encode(made))
