"""What was imported can be read although nobody quotes the instrument."""

from __future__ import annotations

import io
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest
from django.conf import LazySettings
from django.core.management import call_command

from instruments.models import Instrument
from market.models import Candle, FormerQuote, LastQuote
from tests.factories import make_instrument

pytestmark = [pytest.mark.django_db, pytest.mark.services]
LINES = "timestamp,bid,ask\n2026-10-05T12:00:00Z,1.08,1.0802\n2026-10-05T12:01:30Z,1.081,1.0812\n"
LAST_AT = datetime(2026, 10, 5, 12, 1, 30, tzinfo=UTC)
TRADES = (
    "12345,0.001,100.0,100,105,1759665600000,True,True\n12346,0.002,100.0,106,107,1759665660000,True,True\n"
)


@pytest.fixture(autouse=True)
def instrument() -> Instrument:
    return make_instrument("EURUSD")


def run(path: Path, text: str = LINES) -> str:
    path.write_text(text)
    out = io.StringIO()
    call_command("import_ticks", "EURUSD", str(path), stdout=out)
    return out.getvalue()


def quoted(row: LastQuote | FormerQuote) -> tuple[Decimal | None, Decimal | None, datetime | None, str]:
    row.refresh_from_db()
    return row.bid, row.ask, row.quoted_at, row.source


def test_the_last_bid_and_ask_of_the_file_are_the_last_quote(tmp_path: Path) -> None:
    run(tmp_path / "EURUSD.csv")

    assert quoted(LastQuote.objects.get()) == (Decimal("1.081"), Decimal("1.0812"), LAST_AT, "import")


def test_a_newer_quote_stays(tmp_path: Path, instrument: Instrument) -> None:
    newer = datetime(2026, 10, 5, 12, 1, 31, tzinfo=UTC)
    row = LastQuote.objects.create(instrument=instrument, bid=2, ask=3, quoted_at=newer, source="push")

    run(tmp_path / "EURUSD.csv")

    assert quoted(row) == (Decimal(2), Decimal(3), newer, "push")


def test_the_numbers_of_the_stream_stay(tmp_path: Path, instrument: Instrument) -> None:
    LastQuote.objects.create(
        instrument=instrument, bid=2, ask=3, quoted_at=datetime(2026, 1, 1, tzinfo=UTC), seq=9
    )

    run(tmp_path / "EURUSD.csv")

    row = LastQuote.objects.get()
    assert (row.bid, row.seq) == (Decimal("1.081"), 9)


def test_trades_make_candles_and_no_quote(tmp_path: Path) -> None:
    run(tmp_path / "EURUSD.csv", TRADES)

    assert Candle.objects.filter(timeframe="1m").exists()
    assert not LastQuote.objects.exclude(bid=None).exists()


def test_beside_simulated_prices_it_waits_until_they_are_real(
    tmp_path: Path, instrument: Instrument, settings: LazySettings
) -> None:
    settings.DEMO = True
    now = datetime(2026, 11, 18, tzinfo=UTC)
    simulated = LastQuote.objects.create(
        instrument=instrument, bid=2, ask=3, quoted_at=now, source="demo", simulated=True
    )

    output = run(tmp_path / "EURUSD.csv")

    assert quoted(simulated) == (Decimal(2), Decimal(3), now, "demo")
    assert quoted(FormerQuote.objects.get())[3] == "import"
    assert "priced by a simulated source" in output
    assert "If the service runs with DEMO=0, import them again with DEMO=0" in output
    assert set(Candle.objects.values_list("simulated", flat=True)) == {False}
