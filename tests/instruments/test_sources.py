"""Simulated and real feeds never stand in for each other, however an instrument is written."""

from __future__ import annotations

from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command

from instruments.facts import FEEDS, VENUES, feeds_of, is_simulated
from instruments.models import Instrument
from instruments.saving import SHIPPED, save
from market.engine.feeds import supervisor
from tests.factories import make_instrument

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("source", "fallback", "demo", "is_taken"),
    [
        ("kraken", "binance", False, True),
        ("kraken", "demo", False, False),
        ("push:desk", "replay", False, False),
        ("demo", "kraken", True, False),
        ("replay", "demo", True, True),
        ("", "kraken", False, True),
        ("", "kraken", True, False),
        ("", "replay", True, True),
        ("", "demo", False, False),
    ],
)
def test_a_fallback_is_of_the_kind_of_the_source(
    settings: LazySettings, source: str, fallback: str, demo: bool, is_taken: bool
) -> None:
    settings.DEMO = demo
    instrument = make_instrument("EURUSD")
    instrument.source, instrument.fallback = source, fallback
    if is_taken:
        instrument.full_clean()
        return
    with pytest.raises(ValidationError, match="never stand in"):
        instrument.full_clean()
    with pytest.raises(ValidationError, match="never stand in"):
        save(instrument, by="test")
    assert Instrument.objects.get().fallback == ""


def test_a_table_with_such_a_fallback_is_refused(tmp_path: Path) -> None:
    call_command("load_instruments", verbosity=0)
    header, row, *_ = (SHIPPED / "instruments.csv").read_text().splitlines()
    cells = dict(zip(header.split(","), row.split(","), strict=True))
    cells |= {"source": "kraken", "fallback": "demo"}
    table = tmp_path / "instruments.csv"
    table.write_text(f"{header}\n{','.join(cells.values())}\n")
    with pytest.raises(CommandError, match="never stand in"):
        call_command("load_instruments", str(table), verbosity=0)
    assert not Instrument.objects.exclude(fallback="").exists()


def test_the_kind_is_told_by_the_name_and_what_is_not_known_is_real() -> None:
    assert all(map(is_simulated, ("demo", "replay", "demo+replay")))
    real = ("kraken:BTC/USD", "push", "", "import", "kraken+binance", "demonstration")
    assert not any(map(is_simulated, real))


def test_a_source_is_a_feed_that_the_market_has() -> None:
    assert tuple(supervisor.VENUES) == VENUES
    instrument = make_instrument("EURUSD")
    for source in FEEDS:
        instrument.source, instrument.fallback = f"{source}:its/own", ""
        instrument.full_clean()
    instrument.source = "nasdaq"
    with pytest.raises(ValidationError, match=f"One of {', '.join(FEEDS)}; the venue"):
        instrument.full_clean()


@pytest.mark.parametrize(
    ("source", "fallback", "feeds"),
    [
        ("", "", ("demo",)),
        ("kraken", "", ("kraken",)),
        ("kraken:XBT/USD", "binance:BTCUSDT", ("kraken", "binance")),
        ("", "replay", ("demo", "replay")),
        ("push:desk", "push", ("push:desk", "push")),
        ("kraken:A", "kraken:B", ("kraken",)),
    ],
)
def test_instrument_names_its_feeds(source: str, fallback: str, feeds: tuple[str, ...]) -> None:
    assert feeds_of(source, fallback, "demo") == feeds
