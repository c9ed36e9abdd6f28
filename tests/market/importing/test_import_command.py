"""`import_ticks` as a person types it, and the last quote that it leaves."""

from __future__ import annotations

import io
import sys
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.conf import LazySettings
from django.core.management import CommandError, call_command

from instruments.models import Instrument
from market.management.terminal import ProgressBar
from market.models import Candle, FormerQuote, LastQuote
from tests.factories import make_instrument

pytestmark = [pytest.mark.django_db, pytest.mark.services]
START = "timestamp,bid,ask\n"
GOOD = "2026-10-05T12:00:00Z,1.08,1.0802\n2026-10-05T12:01:30Z,1.081,1.0812\n"
LAST_AT = datetime(2026, 10, 5, 12, 1, 30, tzinfo=UTC)
TRADES = "".join(f"1234{n},0.00{n},100.0,100,105,{1759665600000 + n},True,True\n" for n in (5, 6))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def instrument() -> Instrument:
    return make_instrument("EURUSD")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "EURUSD.csv"
    path.write_text(START + GOOD)
    return path


def run(*words: str | Path) -> tuple[str, str]:
    """What it said, and what it complained of."""
    out, err = io.StringIO(), io.StringIO()
    call_command("import_ticks", *map(str, words), stdout=out, stderr=err)
    return out.getvalue(), err.getvalue()


def quoted(row: LastQuote | FormerQuote) -> tuple[Any, ...]:
    row.refresh_from_db()
    return row.bid, row.ask, row.quoted_at, row.source


def test_summary_says_what_was_made_of_what_and_gaps_of_days(
    path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    made = "EURUSD: 2 ticks made 2 one-minute candles, 2026-10-05 12:00 to 2026-10-05 12:01 UTC.\n"
    assert run("EURUSD", path) == (made, "")
    # Nothing moves where nobody looks.
    assert capfd.readouterr() == ("", "")
    path.write_text(START + GOOD + "2026-10-08T12:00:00Z,1.08,1.0802\n")
    assert "1 gap of more than a trading day" in run("EURUSD", path)[0]


def test_bad_lines_are_named_and_counted(path: Path) -> None:
    path.write_text(START + "oops\n" * 12 + GOOD + "2026-10-05T12:02:00Z,1.08,1.07\n")
    out, err = run("eurusd", path)
    assert out.splitlines()[1] == "13 bad lines were left out."
    assert err.splitlines()[0] == f"{path}, line 2: no line of this format"
    assert err.splitlines()[-2:] == [
        f"{path}, line 16: the ask is below the bid",
        "… and 2 more lines: no line of this format",
    ]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["EURUSD", "--strict"], r"line 4: no line of this format\. The whole minutes before it are"),
        (["EURUSF"], r"no instrument EURUSF\. Did you mean EURUSD\?"),
        (["EURUSD", "nowhere.csv"], "nowhere.csv cannot be read: No such file"),
        (["EURUSD", "--format", "histdata"], "Is it the right file"),
    ],
)
def test_what_goes_wrong_is_told(path: Path, words: list[str], complaint: str) -> None:
    path.write_text(START + GOOD + "oops\n")
    with pytest.raises(CommandError, match=complaint):
        run(words[0], path, *words[1:])
    # A missing file among several is told before anything is done.
    assert not ("nowhere.csv" in words and Candle.objects.exists())


def test_terminal_shows_a_bar_and_clears_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    run("EURUSD", path)
    assert terminal.getvalue().endswith("\r\033[K")


@pytest.mark.parametrize(
    ("size", "shown"),
    [(1000, f" 50% [{'#' * 15}{' ' * 15}]  300,000 ticks, 150,000/s"), (0, "300,000 ticks, 150,000/s")],
)
def test_bar_shows_the_share_of_the_bytes_if_it_is_known_and_the_speed(size: int, shown: str) -> None:
    terminal, moments = Terminal(), iter([0.0, 2.0, 2.01])
    bar = ProgressBar(terminal, size, lambda: next(moments))
    bar.show(500, 300_000)
    bar.show(501, 300_001)
    assert terminal.getvalue() == f"\r\033[K{shown}"


def test_the_last_of_the_file_is_the_last_quote_but_for_an_older_ones_number_and_what_a_feed_said(
    path: Path, instrument: Instrument
) -> None:
    older, newer = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 10, 5, 12, 1, 31, tzinfo=UTC)
    run("EURUSD", path)
    row = LastQuote.objects.get()
    assert quoted(row) == (Decimal("1.081"), Decimal("1.0812"), LAST_AT, "import")
    LastQuote.objects.update(bid=2, ask=3, quoted_at=older, source="import", seq=9)
    run("EURUSD", path)
    assert quoted(row) == (Decimal("1.081"), Decimal("1.0812"), LAST_AT, "import")
    assert row.seq == 9
    for at, source in ((newer, "import"), (older, "push")):
        LastQuote.objects.update(bid=2, ask=3, quoted_at=at, source=source)
        run("EURUSD", path)
        assert quoted(row) == (Decimal(2), Decimal(3), at, source)
    # Trades make candles and no quote.
    for model in (Candle, LastQuote):
        model.objects.all().delete()
    path.write_text(TRADES)
    run("EURUSD", path)
    assert Candle.objects.filter(timeframe="1m").exists()
    assert not LastQuote.objects.exclude(bid=None).exists()


@pytest.mark.parametrize(
    ("source", "at", "minutes"),
    [
        ("oanda", LAST_AT, 1),
        ("oanda", LAST_AT - timedelta(seconds=31), 0),
        ("oanda", LAST_AT + timedelta(minutes=1), 2),
        ("push:desk", LAST_AT, 2),
        ("import", LAST_AT, 2),
    ],
)
def test_minutes_from_that_of_a_venues_last_quote_on_are_left_to_it(
    path: Path, instrument: Instrument, source: str, at: datetime, minutes: int, clock: time_machine.Traveller
) -> None:
    """They judge signals, which those of a file do not: staff might hide by them that a stop was reached."""
    clock.move_to(LAST_AT + timedelta(hours=1))
    LastQuote.objects.create(instrument=instrument, bid=2, ask=3, quoted_at=at, source=source)
    out, _ = run("EURUSD", path)
    assert Candle.objects.filter(timeframe="1m").count() == minutes
    assert ("left to the venue" in out) == (minutes < 2)
    # For what is older than a venue is asked for, nobody else has anything.
    clock.shift(timedelta(days=3))
    run("EURUSD", path)
    assert Candle.objects.filter(timeframe="1m").count() == 2


def test_beside_simulated_prices_it_waits_until_they_are_real(
    path: Path, instrument: Instrument, settings: LazySettings
) -> None:
    settings.DEMO = True
    now = datetime(2026, 11, 18, tzinfo=UTC)
    simulated = LastQuote.objects.create(
        instrument=instrument, bid=2, ask=3, quoted_at=now, source="demo", simulated=True
    )
    output, _ = run("EURUSD", path)
    assert quoted(simulated) == (Decimal(2), Decimal(3), now, "demo")
    assert quoted(FormerQuote.objects.get())[3] == "import"
    assert "priced by a simulated source" in output
    assert "If the service runs with DEMO=0, import them again with DEMO=0" in output
    assert set(Candle.objects.values_list("simulated", flat=True)) == {False}
