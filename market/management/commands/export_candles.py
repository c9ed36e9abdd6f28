from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.core.management.base import BaseCommand

from core import clock
from core.times import moment, read_iso
from instruments.facts import InstrumentFacts
from market.management.terminal import find_instrument
from market.models import Candle
from market.prices.candles import COARSER, TIMEFRAMES
from market.prices.history import CSV_FIELDS, CandleRow, csv_line, encode_row, row_of, wire_candle
from market.store.candle_rows import FLOATS, candle_of
from market.store.series import present_kind


class Command(BaseCommand):
    help = "Write the stored candles of an instrument that are over to standard output, oldest first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("symbol")
        parser.add_argument("timeframe", choices=list(TIMEFRAMES))
        parser.add_argument(
            "--start", type=at, help="First candle to include, such as 2026-11-01 or 2026-11-01T12:00 (UTC)."
        )
        parser.add_argument("--end", type=at, help="Exclude candles that open at or after this time.")
        parser.add_argument("--format", choices=("csv", "jsonl"), default="csv")

    def handle(
        self,
        *,
        symbol: str,
        timeframe: str,
        start: datetime | None,
        end: datetime | None,
        format: str,  # noqa: A002 - the option's name
        **options: Any,
    ) -> None:
        rows = read_rows(find_instrument(symbol), timeframe, start, end)
        lines = as_csv(rows) if format == "csv" else (encode_row(row).decode() for row in rows)
        for line in lines:
            self.stdout.write(line)


def read_rows(
    facts: InstrumentFacts, timeframe: str, start: datetime | None, end: datetime | None
) -> Iterator[CandleRow]:
    """The candles as REST answers them, and of those of more than a minute only what is over by the clock."""
    own = {"instrument_id": facts.id, "simulated": present_kind(facts.id), "timeframe": timeframe}
    rows = Candle.objects.filter(**own).order_by("opened_at")
    if start is not None:
        rows = rows.filter(opened_at__gte=start)
    if end is not None:
        rows = rows.filter(opened_at__lt=end)
    if timeframe in COARSER:
        # After a change of source, one that was closed early may still go on.
        rows = rows.filter(opened_at__lte=moment(clock.now_ms() - COARSER[timeframe]))
    for values in rows.annotate(**FLOATS).values_list("opened_at", *FLOATS).iterator(chunk_size=2_000):
        yield row_of(candle_of(values), facts.digits)


def as_csv(rows: Iterator[CandleRow]) -> Iterator[str]:
    yield CSV_FIELDS
    for row in rows:
        yield csv_line(wire_candle(row))


def at(text: str) -> datetime:
    try:
        return read_iso(text)
    except ValueError:
        raise ArgumentTypeError(f"{text} is not a date: write 2026-11-01 or 2026-11-01T12:00Z") from None
