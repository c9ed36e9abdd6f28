"""How fast candles are written on both databases, and beside that the plain way, Django's
`bulk_create(update_conflicts=True)` of the same candles in the same run. As a program it writes them into the
database that its environment names."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from itertools import count
from typing import TYPE_CHECKING

import msgspec

from tests.nightly.benchmarks.processes import measured
from tests.nightly.benchmarks.tables import aligned, spread
from tests.programs.installation import set_up
from tests.programs.services import database_url

if TYPE_CHECKING:
    from market.prices.candles import PriceBar
    from market.store.candle_rows import CandleToWrite

ROUNDS = 3
INSTRUMENTS, SECONDS, MINUTES = 50, 20, 2_000
START_MS = 1_795_003_200_000
OURS, PLAIN = "write_candles", "bulk_create"

Rates = dict[str, tuple[list[float], list[float]]]
"""Candles a second by what was written: ours and the plain way, one figure a round."""
Write = Callable[["list[CandleToWrite]"], object]


def tables() -> str:
    rates = {"SQLite": measured(Rates, "engine.candles_db")}
    with database_url() as url:
        rates["PostgreSQL"] = measured(Rates, "engine.candles_db", DATABASE_URL=url)
    rows = [["candles/s", OURS, PLAIN, "ratio"]]
    for database, found in rates.items():
        for what, (ours, plain) in found.items():
            ratios = [one / other for one, other in zip(ours, plain, strict=True)]
            rows.append([f"{what}, {database}", spread(ours), spread(plain), spread(ratios)])
    return aligned(rows)


def main() -> None:
    set_up()
    from django.core.management import call_command

    from .stages import make_instruments

    call_command("migrate", verbosity=0)
    ids = [facts.id for facts in make_instruments(INSTRUMENTS)]
    sys.stdout.buffer.write(msgspec.json.encode(measure(ids)))


def measure(ids: list[int]) -> Rates:
    """In turns, so that neither finds a fuller database or a busier machine than the other."""

    from core.times import moment
    from market.store import market_tables, write_candles

    # A year to either side, so that nobody makes a month meanwhile.
    market_tables().make_months(moment(START_MS + day * 86_400_000) for day in range(-366, 366))
    rates: Rates = {}
    days = count()
    with_checkpoints = checkpointing(ids)
    for _ in range(ROUNDS):
        for place, write in enumerate((write_candles, write_plainly)):
            closing = [closed_at(ids, next(days)) for _ in range(SECONDS)]
            note(rates, "300 closed candles at a time", place, write, closing)
            closing = [closed_at(ids, next(days)) for _ in range(SECONDS)]
            note(rates, "300 and 50 checkpoints at a time", place, with_checkpoints(write), closing)
            note(rates, f"{MINUTES * len(ids):,} candles", place, write, [past(ids, next(days))])
    return rates


def note(rates: Rates, what: str, place: int, write: Write, batches: list[list[CandleToWrite]]) -> None:
    began_s = time.perf_counter()
    for rows in batches:
        write(rows)
    taken_s = time.perf_counter() - began_s
    rates.setdefault(what, ([], []))[place].append(sum(map(len, batches)) / taken_s)


def write_plainly(rows: list[CandleToWrite]) -> None:
    """As one would with Django alone."""
    from core.times import moment
    from instruments.facts import is_simulated
    from market.models import Candle
    from market.store.candle_rows import PRICES

    Candle.objects.bulk_create(
        [
            Candle(
                instrument_id=instrument_id,
                timeframe=timeframe,
                opened_at=moment(candle.opened_ms),
                basis=basis,
                source=candle.source,
                simulated=is_simulated(candle.source),
                **{name: getattr(candle, name) for name in PRICES},
            )
            for instrument_id, timeframe, candle, basis in rows
        ],
        batch_size=5_000,
        update_conflicts=True,
        unique_fields=["instrument", "timeframe", "opened_at", "simulated"],
        update_fields=[*PRICES, "basis", "source"],
    )


def checkpointing(ids: list[int]) -> Callable[[Write], Write]:
    """The engine's second: candles and where each instrument stands, in one transaction."""
    from django.db import transaction

    from market.prices.records import Tick
    from market.store.checkpoints import Checkpoint, write_quotes

    stands = {i: Checkpoint(Tick("BENCH", 1.1, 1.2, START_MS), None, 7) for i in ids}

    def with_checkpoints(write: Write) -> Write:
        def write_both(rows: list[CandleToWrite]) -> None:
            with transaction.atomic():
                write(rows)
                write_quotes(stands.items())

        return write_both

    return with_checkpoints


def closed_at(ids: list[int], day: int) -> list[CandleToWrite]:
    """A midnight, at which every interval of every instrument ends."""
    from market.prices.candles import TIMEFRAMES

    midnight_ms = START_MS // TIMEFRAMES["1d"] * TIMEFRAMES["1d"] - day * TIMEFRAMES["1d"]
    return [
        (i, timeframe, make_candle(i, midnight_ms - span_ms), "bid")
        for i in ids
        for timeframe, span_ms in TIMEFRAMES.items()
    ]


def past(ids: list[int], number: int) -> list[CandleToWrite]:
    """A day and a half of minutes of every instrument, as an import brings them; each number another one."""
    from core.times import MINUTE_MS

    first_ms = START_MS + number * MINUTES * MINUTE_MS
    opened = range(first_ms, first_ms + MINUTES * MINUTE_MS, MINUTE_MS)
    return [(i, "1m", make_candle(i, at_ms), "bid") for i in ids for at_ms in opened]


def make_candle(seed: int, opened_ms: int) -> PriceBar:
    from market.prices.candles import PriceBar

    low = round(1.1 + (seed * 31 + opened_ms // 60_000) % 997 / 1e5, 5)
    high = round(low + 0.0007, 5)
    return PriceBar(opened_ms, round(low + 0.0002, 5), high, low, round(low + 0.0004, 5), 12.5, high, low)


if __name__ == "__main__":
    main()
