"""Files of ticks, and what an import makes of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from core.times import moment
from instruments.catalogue import catalogue
from market.engine.files.format import encode
from market.engine.importing.importer import Importer, ImportTerms
from market.engine.importing.tally import ImportTally
from market.models import Candle
from market.prices.candles import TIMEFRAMES, PriceBar
from market.prices.records import Tick
from tests.market.ticking import NOON_MS, aggregate, ms

Rows = list[tuple[Any, ...]]
COLUMNS = ("timeframe", "opened_at", "open", "high", "low", "close", "volume", "ask_high", "ask_low", "basis")


def walk(start: str, minutes: int, every_s: int = 20) -> list[Tick]:
    """Ticks that wander up and down, the same each time."""
    since_ms, ticks = ms(start), list[Tick]()
    for number in range(minutes * 60 // every_s):
        bid = 108_000 + (number * 37 % 101) - (number * 11 % 53)
        ticks.append(Tick("EURUSD", bid / 1e5, (bid + 2) / 1e5, since_ms + number * every_s * 1000))
    return ticks


def write(path: Path, ticks: Sequence[Tick], line_bytes: int = 0) -> str:
    """A recording; longer lines make more batches of it."""
    lines = (encode([tick])[:-2].ljust(line_bytes) + b"}\n" for tick in ticks)
    path.write_bytes(b"".join(lines))
    return str(path)


def never_stop(done: int) -> bool:
    return True


def make_importer(
    now_ms: int = NOON_MS, *, price: str = "bid", strict: bool = False, restart: bool = False
) -> Importer:
    terms = ImportTerms(catalogue.get_any("EURUSD"), price, now_ms, 0.00001, strict)
    return Importer(terms, restart=restart)


def import_files(*paths: str, go_on: Callable[[int], bool] = never_stop, **terms: Any) -> ImportTally:
    importer = make_importer(**terms)
    importer.run(paths, None, go_on)
    return importer.tally


def rows() -> Rows:
    return list(Candle.objects.order_by("timeframe", "opened_at").values_list(*COLUMNS))


def stored(timeframe: str) -> list[PriceBar]:
    found = Candle.objects.filter(timeframe=timeframe).order_by("opened_at")
    return [
        PriceBar(
            round(row.opened_at.timestamp() * 1000),
            *(float(value) for value in (row.open, row.high, row.low, row.close, row.volume)),  # type: ignore[arg-type]
            *(float(value) for value in (row.ask_high or 0, row.ask_low or 0)),
        )
        for row in found
    ]


def assert_coarser_are_aggregates(until_ms: int) -> None:
    """Every interval that is over holds what its minutes hold."""
    minutes = stored("1m")
    for timeframe, span_ms in TIMEFRAMES.items():
        over = [bar for bar in aggregate(minutes, span_ms) if bar.opened_ms + span_ms <= until_ms]
        assert stored(timeframe) == over, timeframe


def forget() -> None:
    Candle.objects.all().delete()


def opened(timeframe: str) -> list[str]:
    return [f"{moment(candle.opened_ms):%d %H:%M}" for candle in stored(timeframe)]
