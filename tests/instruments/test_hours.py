import csv
from datetime import datetime, time, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from instruments.hours import TradingHours
from tests.market.ticking import ms

DATA = Path(__file__).parents[2] / "instruments" / "data"
CALENDARS = {row["name"]: row for row in csv.DictReader((DATA / "calendars.csv").read_text().splitlines())}
INSTRUMENTS = list(csv.DictReader((DATA / "instruments.csv").read_text().splitlines()))
NEW_YORK, LONDON, BERLIN = "America/New_York", "Europe/London", "Europe/Berlin"
DAY_MS = 86_400_000


PLANS = {
    **{name: (row["timezone"], row["sessions"], row["holidays"]) for name, row in CALENDARS.items()},
    "nights": (NEW_YORK, "Mon-Sun 03:00-02:00", "2026-03-08 2026-11-01@01:30"),
    "skipped hour": (NEW_YORK, "Sun 02:15-02:45; Sun 03:00-05:00", ""),
    "lunch": ("Asia/Tokyo", "Mon-Fri 09:00-11:30; Mon-Fri 12:30-15:30", "2026-05-04@12:00"),
    "joined": (BERLIN, "Mon-Fri 18:00-11:30; Mon-Fri 12:30-18:00", "2026-12-24@09:00"),
    "midnight": (LONDON, "Sun-Tue 20:00-00:00; Mon 00:00-10:00", "2026-03-30"),
    "sunday to sunday": (LONDON, "Sun 02:00-Sun 01:00", "2026-03-29 2026-10-25"),
}
HOURS = {name: TradingHours.parse(*plan) for name, plan in PLANS.items()}
CLOSING = {name: hours for name, hours in HOURS.items() if name != "crypto"}
YEAR = (ms("2026-01-01"), ms("2027-01-08"))
EDGES = [edge for hours in CLOSING.values() for span in hours.sessions_between(*YEAR) for edge in span]
hours_of_any = st.sampled_from(list(CLOSING.values()))
around_edges = st.builds(int.__add__, st.sampled_from(EDGES), st.integers(-2, 2))
instants = around_edges | st.integers(ms("2023-12-25"), ms("2029-01-08"))


@pytest.mark.parametrize(
    ("calendar", "at", "session"),
    [
        ("forex", "2026-02-04T12:00", ("2026-02-01T22:00", "2026-02-06T22:00")),
        ("forex", "2026-03-08T21:00", ("2026-03-08T21:00", "2026-03-13T21:00")),
        ("forex", "2026-10-28T12:00", ("2026-10-25T21:00", "2026-10-30T21:00")),
        ("forex", "2026-11-01T22:00", ("2026-11-01T22:00", "2026-11-06T22:00")),
        ("us-stock", "2026-03-09T15:00", ("2026-03-09T13:30", "2026-03-09T20:00")),
        ("uk-index", "2026-03-27T15:00", ("2026-03-27T01:00", "2026-03-27T21:00")),
        ("uk-index", "2026-03-30T15:00", ("2026-03-30T00:00", "2026-03-30T20:00")),
        ("uk-index", "2026-10-26T15:00", ("2026-10-26T01:00", "2026-10-26T21:00")),
        ("eu-index", "2026-03-27T15:00", ("2026-03-27T07:00", "2026-03-27T21:00")),
        ("eu-index", "2026-03-30T15:00", ("2026-03-30T06:00", "2026-03-30T20:00")),
        ("eu-index", "2026-10-26T15:00", ("2026-10-26T07:00", "2026-10-26T21:00")),
        ("forex", "2026-12-23T12:00", ("2026-12-20T22:00", "2026-12-24T22:00")),
        ("forex", "2024-01-01T22:00", ("2024-01-01T22:00", "2024-01-05T22:00")),
        ("metals", "2024-12-25T23:00", ("2024-12-25T23:00", "2024-12-26T22:00")),
        ("us-index", "2026-11-27T00:00", ("2026-11-26T23:00", "2026-11-27T18:15")),
        ("midnight", "2026-02-01T23:00", ("2026-02-01T20:00", "2026-02-02T10:00")),
        ("nights", "2026-11-01T05:00", ("2026-10-31T07:00", "2026-11-01T05:30")),
        ("midnight", "2026-03-30T20:00", None),
        ("forex", "1969-12-31T12:00", None),
    ],
)
def test_session_at_follows_local_wall_time(calendar: str, at: str, session: tuple[str, str] | None) -> None:
    expected = None if session is None else (ms(session[0]), ms(session[1]))
    assert TradingHours.parse(*PLANS[calendar]).session_at(ms(at)) == expected


@pytest.mark.parametrize(
    ("timezone", "sessions", "holidays", "message"),
    [
        ("Mars/Base", "24/7", "", 'timezone "Mars/Base"'),
        ("America", "24/7", "", 'timezone "America"'),
        ("UTC", "", "", 'session ""'),
        ("UTC", "Mon-Tue 09:00-Fri 10:00", "", 'session "Mon-Tue 09:00-Fri 10:00"'),
        ("UTC", "Mon-Fry 09:00-10:00", "", 'day "Fry"'),
        ("UTC", "Mon 09:00-24:00", "", 'time "24:00"'),
        ("UTC", "Mon-Fri 09:00-17:00; Wed 16:00-18:00", "", "overlap on Wed"),
        ("UTC", "Mon 09:00-10:00; Sun 12:00-09:01", "", "overlap on Mon"),
        ("UTC", "Mon-Sun 00:00-00:00", "", "never close"),
        ("UTC", "24/7", "2026-12-25", "holidays must be empty"),
        ("UTC", "Mon 09:00-10:00", "2026-02-30", 'holiday "2026-02-30"'),
        (
            "UTC",
            "Mon 09:00-10:00",
            "2026-02-02 2026-02-02@09:30",
            'holiday "2026-02-02@09:30" is given twice',
        ),
    ],
)
def test_parse_names_the_bad_part(timezone: str, sessions: str, holidays: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        TradingHours.parse(timezone, sessions, holidays)


def test_round_the_clock_never_opens_or_closes() -> None:
    crypto, at_ms = HOURS["crypto"], ms("2026-02-07T12:00")
    assert crypto.is_open(at_ms)
    assert crypto.next_open(at_ms) is None
    assert crypto.last_open_before(at_ms) == (ms("2026-02-07"), ms("2026-02-08"))
    assert list(crypto.sessions_between(at_ms, at_ms + 9 * DAY_MS)) == [(at_ms, at_ms + 9 * DAY_MS)]


def test_weekend_lies_between_friday_close_and_sunday_open() -> None:
    forex, saturday_ms = HOURS["forex"], ms("2026-02-07T12:00")
    assert forex.last_open_before(saturday_ms) == (ms("2026-02-01T22:00"), ms("2026-02-06T22:00"))
    assert forex.next_open(saturday_ms) == ms("2026-02-08T22:00")
    assert [forex.is_open(ms(f"2026-02-06T{at}")) for at in ("21:59", "22:00")] == [True, False]
    assert forex.session_at(ms("2026-02-08T22:00")) == (ms("2026-02-08T22:00"), ms("2026-02-13T22:00"))


def test_sessions_between_leaves_out_a_christmas_and_a_new_year() -> None:
    sessions = list(HOURS["forex"].sessions_between(ms("2025-12-24T12:00"), ms("2026-01-02T12:00")))
    texts = ["2025-12-24T12:00", "2025-12-24T22:00", "2025-12-25T22:00", "2025-12-26T22:00"]
    texts += ["2025-12-28T22:00", "2025-12-31T22:00", "2026-01-01T22:00", "2026-01-02T12:00"]
    assert [edge for session in sessions for edge in session] == [ms(text) for text in texts]


def test_session_inside_the_skipped_hour_is_left_out() -> None:
    hours, opens_ms = HOURS["skipped hour"], ms("2026-03-08T07:00")
    assert hours.next_open(ms("2026-03-08T06:00")) == opens_ms
    assert hours.session_at(opens_ms) == (opens_ms, ms("2026-03-08T09:00"))


def test_nothing_opens_after_the_last_year() -> None:
    assert HOURS["forex"].next_open(1 << 60) is None
    assert not HOURS["forex"].is_open(1 << 60)


@given(hours_of_any, st.lists(instants, min_size=1, max_size=4))
def test_is_open_agrees_with_session_at_in_any_order(hours: TradingHours, times: list[int]) -> None:
    for at_ms in times:
        session = hours.last_open_before(at_ms) or (0, 0)
        assert 0 < session[0] <= at_ms
        assert hours.is_open(at_ms) == (at_ms < session[1])
        assert hours.session_at(at_ms) == (session if at_ms < session[1] else None)


@given(hours_of_any, instants)
def test_next_open_is_the_next_start_of_a_session(hours: TradingHours, at_ms: int) -> None:
    opens, session = hours.next_open(at_ms) or 0, hours.session_at(at_ms)
    assert at_ms < opens
    assert hours.session_at(opens) is not None
    assert hours.session_at(opens - 1) != hours.session_at(opens)
    assert session is None or session[1] <= opens


@given(hours_of_any, instants, st.integers(0, 40 * DAY_MS))
def test_sessions_are_apart_and_in_the_range(hours: TradingHours, start_ms: int, length: int) -> None:
    end_ms = start_ms + length
    sessions = list(hours.sessions_between(start_ms, end_ms))
    assert all(start_ms <= opens < closes <= end_ms for opens, closes in sessions)
    assert all(before[1] <= after[0] for before, after in pairwise(sessions))
    assert all(hours.is_open(opens) and hours.is_open(closes - 1) for opens, closes in sessions)


@given(st.sampled_from(["metals", "us-index", "us-stock", "eu-index"]), instants)
def test_daily_hours_agree_with_the_local_clock(calendar: str, at_ms: int) -> None:
    row = CALENDARS[calendar]
    local = datetime.fromtimestamp(at_ms / 1_000, ZoneInfo(row["timezone"]))
    opens, closes = (time.fromisoformat(text) for text in row["sessions"].split()[1].split("-"))
    evening = opens > closes and local.time() >= opens
    trading_day = local.date() + timedelta(days=evening)
    holidays = dict((*text.split("@"), "00:00")[:2] for text in row["holidays"].split())
    early = holidays.get(str(trading_day), "23:59")
    open_by_clock = evening or (opens > closes or opens <= local.time()) and local.time() < closes
    closed_early = early == "00:00" or not evening and local.time() >= time.fromisoformat(early)
    is_open = open_by_clock and trading_day.weekday() < 5 and not closed_early
    assert HOURS[calendar].is_open(at_ms) == is_open


@pytest.mark.served
@pytest.mark.parametrize("name", sorted(CALENDARS.keys() - {"crypto"}))
def test_every_shipped_holiday_closes_something(name: str) -> None:
    row = CALENDARS[name]
    days = row["holidays"].split()
    assert days == sorted(days)
    assert {day[:4] for day in days} == {"2024", "2025", "2026", "2027", "2028"}
    span = (ms("2023-12-01"), ms("2029-02-01"))
    shipped = list(HOURS[name].sessions_between(*span))
    for day in days:
        fewer = TradingHours.parse(row["timezone"], row["sessions"], row["holidays"].replace(day, "", 1))
        assert list(fewer.sessions_between(*span)) != shipped, day


@pytest.mark.parametrize("row", INSTRUMENTS, ids=lambda row: row["symbol"])
def test_shipped_instrument_is_consistent(row: dict[str, str]) -> None:
    assert row["calendar"] in CALENDARS
    assert (row["volume_kind"], row["order_flow_source"]) in {("traded", "trades"), ("ticks", "tick_rule")}
    assert Decimal(row["pip_size"]) % Decimal(10) ** -int(row["digits"]) == 0
    assert 0 < Decimal(row["margin_rate"]) < 1 <= Decimal(row["contract_size"])
    assert 0 < Decimal(row["min_lot"]) < Decimal(row["max_lot"])
    assert (int(row["stale_after_s"]), row["active"]) == (60, "true")


def test_shipped_symbols_are_unique_and_cover_every_type() -> None:
    symbols = [row["symbol"] for row in INSTRUMENTS]
    assert symbols == sorted(set(symbols))
    assert {row["type"] for row in INSTRUMENTS} == {"forex", "commodity", "crypto", "index", "stock"}
