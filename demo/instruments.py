"""The instruments of the demo: those that are shipped, and one that clients can test with."""

import csv
from decimal import Decimal

from django.core.management import call_command
from django.db.models import Q, QuerySet

from instruments.facts import TEST_SYMBOL
from instruments.models import Instrument, TradingCalendar
from instruments.saving import SHIPPED, save

from .progress import Progress

TEST_NAME = "Test instrument"
ALWAYS_OPEN = "always-open"


def seed_instruments(progress: Progress) -> None:
    if not Instrument.objects.exists():
        progress("Loading the instruments")
        call_command("load_instruments", verbosity=0)
    if Instrument.objects.filter(symbol=TEST_SYMBOL).exists():
        return
    calendar, _ = TradingCalendar.objects.get_or_create(name=ALWAYS_OPEN, defaults={"sessions": "24/7"})
    test = Instrument(
        symbol=TEST_SYMBOL,
        name=TEST_NAME,
        type=Instrument.Type.CRYPTO,
        calendar=calendar,
        pip_size=Decimal("0.01"),
        contract_size=1,
        margin_rate=Decimal("0.5"),
        min_lot=1,
        max_lot=1_000,
        digits=2,
        volume_kind=Instrument.VolumeKind.TRADED,
        order_flow_source=Instrument.OrderFlowSource.TRADES,
    )
    save(test, by="demo")


def brought() -> QuerySet[Instrument]:
    """Those that the demo may have added. Older demos gave the test instrument a longer name."""
    shipped = Q(symbol__in=_shipped("instruments", "symbol"))
    return Instrument.objects.filter(shipped | Q(symbol=TEST_SYMBOL, name__startswith=TEST_NAME))


def brought_calendars() -> QuerySet[TradingCalendar]:
    return TradingCalendar.objects.filter(name__in=[*_shipped("calendars", "name"), ALWAYS_OPEN])


def _shipped(table: str, column: str) -> list[str]:
    with (SHIPPED / f"{table}.csv").open() as rows:
        return [row[column] for row in csv.DictReader(rows)]
