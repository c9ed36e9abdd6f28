"""`export_candles` as a person types it."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta

import pytest
from django.core.management import CommandError, call_command
from time_machine import Traveller

from instruments.models import Instrument
from tests.factories import NOON, make_candle, make_instrument

pytestmark = [pytest.mark.django_db, pytest.mark.services]


@pytest.fixture(autouse=True)
def candles(clock: Traveller) -> None:
    """Four of a minute each, the last first; and one of an hour, which is over."""
    clock.move_to(NOON + timedelta(hours=1))
    instrument = make_instrument("EURUSD")
    for minute in (3, 2, 1, 0):
        make_candle(instrument, opened_at=NOON + timedelta(minutes=minute))
    make_candle(instrument, "1h")


def export(*words: str) -> str:
    out = io.StringIO()
    call_command("export_candles", *words, stdout=out)
    return out.getvalue()


def times(*words: str) -> list[str]:
    return [row["time"][11:16] for row in csv.DictReader(io.StringIO(export("EURUSD", "1m", *words)))]


def test_csv_has_the_fields_of_the_interface() -> None:
    assert export("EURUSD", "1h") == (
        "time,open,high,low,close,volume\n2026-11-18T12:00:00Z,1.0801,1.0804,1.08,1.0802,12.0\n"
    )


def test_json_lines_are_as_the_interface_has_them() -> None:
    assert json.loads(export("EURUSD", "1h", "--format", "jsonl")) == {
        "time": "2026-11-18T12:00:00Z",
        **{"open": 1.0801, "high": 1.0804, "low": 1.08, "close": 1.0802},
        "volume": 12.0,
    }


def test_oldest_comes_first() -> None:
    assert times() == ["12:00", "12:01", "12:02", "12:03"]


def test_start_is_included_and_end_is_not() -> None:
    assert times("--start", "2026-11-18T12:01", "--end", "2026-11-18T14:03+02:00") == ["12:01", "12:02"]


def test_day_begins_at_midnight_utc() -> None:
    assert len(times("--start", "2026-11-18", "--end", "2026-11-19")) == 4
    assert times("--start", "2026-11-19") == []


def test_hour_that_was_closed_early_is_not_there_before_it_is_over(clock: Traveller) -> None:
    assert len(export("EURUSD", "1h").splitlines()) == 2
    clock.move_to(NOON + timedelta(minutes=59))
    assert len(export("EURUSD", "1h").splitlines()) == 1
    assert len(times()) == 4


def test_instrument_that_is_no_longer_offered_is_exported() -> None:
    Instrument.objects.update(active=False)

    assert len(times()) == 4


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["EURUSX", "1m"], "Did you mean EURUSD"),
        (["EURUSD", "7m"], "invalid choice: '7m'"),
        (["EURUSD", "1m", "--start", "yesterday"], "yesterday is not a date: write 2026-11-01"),
    ],
)
def test_wrong_words_are_told(words: list[str], complaint: str) -> None:
    with pytest.raises(CommandError, match=complaint):
        export(*words)
