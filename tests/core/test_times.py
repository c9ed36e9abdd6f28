from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.times import (
    age_text,
    epoch_ms,
    epoch_ms_after,
    epoch_ms_before,
    hours_and_minutes,
    iso_date,
    iso_ms,
    iso_s,
    iso_time,
    midnight,
    moment,
    read_iso,
)

NOON = datetime(2026, 11, 21, 12, 0, 0, 250_000, UTC)
TOKYO = timezone(timedelta(hours=9))
NOON_MS = 1_795_262_400_250
milliseconds = st.integers(-(10**12), 10**13)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "0 s"),
        (0.9, "0 s"),
        (119.9, "119 s"),
        (120, "2 min"),
        (7199, "119 min"),
        (38.7 * 3600, "38 h"),
        (172_799, "47 h"),
        (172_800, "2 d"),
    ],
)
def test_an_age_is_in_whole_units_that_have_passed(seconds: float, text: str) -> None:
    assert age_text(seconds) == text


@given(milliseconds)
def test_no_millisecond_is_lost_on_the_way_there_and_back(time_ms: int) -> None:
    at = moment(time_ms)
    assert epoch_ms(at) == epoch_ms_before(at) == epoch_ms_after(at) == time_ms


def test_part_of_a_millisecond_belongs_to_both_sides() -> None:
    at = NOON + timedelta(microseconds=1)
    assert (epoch_ms_before(at), epoch_ms_after(at)) == (NOON_MS, NOON_MS + 1)


@given(milliseconds)
def test_text_is_the_same_from_milliseconds_and_from_a_datetime(time_ms: int) -> None:
    assert iso_ms(time_ms) == iso_time(moment(time_ms))


def test_texts_on_the_wire() -> None:
    for at in (NOON, NOON.astimezone(TOKYO), NOON.replace(tzinfo=None)):
        assert iso_time(at) == iso_ms(NOON_MS) == "2026-11-21T12:00:00.250Z"
    assert iso_s(NOON_MS) == "2026-11-21T12:00:00Z"
    assert iso_date(NOON_MS) == "2026-11-21"
    assert midnight(datetime(2026, 11, 22, 3, tzinfo=TOKYO)) == datetime(2026, 11, 21, tzinfo=UTC)
    with pytest.raises(ValueError, match="noon"):
        read_iso("noon")


@pytest.mark.parametrize(
    "text", ["2026-11-21T12:00:00.250Z", "2026-11-21T12:00:00.250", "2026-11-21T21:00:00.250+09:00"]
)
def test_text_is_read_as_utc_where_it_names_no_zone(text: str) -> None:
    assert read_iso(text) == NOON


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (1, "1 min"),
        (60, "1 min"),
        (61, "2 min"),
        (3_540, "59 min"),
        (3_541, "1 h 0 min"),
        (35_793, "9 h 57 min"),
        (86_400, "24 h 0 min"),
    ],
)
def test_wait_is_told_in_hours_and_minutes_and_never_too_short(seconds: int, text: str) -> None:
    assert hours_and_minutes(seconds) == text
