"""The page on which staff see what is wrong with the market."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings
from time_machine import Traveller, travel

from core.clock import now_ms
from tests.accounts.back_office.office import Office, change, text_of
from tests.factories import NOON, make_calendar, make_instrument, make_user, put_quote
from tests.market.engine_status import make_feed_status, make_instrument_status, tell, untold  # noqa: F401 - a fixture

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("untold")]
PAGE = "/admin/market/status/"


@pytest.fixture
def clock() -> Iterator[Traveller]:
    with travel(NOON, tick=False) as traveller:
        yield traveller


def page(office: Office) -> str:
    """Its words and tags, with the white space of a reader."""
    return " ".join(text_of(office.get(PAGE)).split())


def row_of(office: Office, name: str) -> str:
    """The row of an instrument or a source."""
    rows = re.findall(r"<tr role=\"row\".*?</tr>", page(office))
    (found,) = (row for row in rows if re.search(rf"<th[^>]*>\s*(<a[^>]*>)?\s*{name}\b", row))
    return str(found)


def is_red(row: str) -> bool:
    return "status-row-bad" in row


def words(html: str) -> str:
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


def test_stale_quote_is_red_and_says_so_and_one_of_a_closed_market_is_not(
    office: Office, clock: Traveller
) -> None:
    eurusd = make_instrument()
    make_instrument("AAPL", calendar=make_calendar("afternoon", "Mon-Fri 13:00-14:00"))
    put_quote(bid=1.0841, ask=1.08424)
    put_quote("AAPL", at_ms=now_ms() - 80_000_000)
    tell((make_feed_status(),), (make_instrument_status(ticks=1234567, cumulative_delta=-1250.0),))
    fresh, closed = row_of(office, "EURUSD"), row_of(office, "AAPL")
    clock.shift(61)
    stale = row_of(office, "EURUSD")

    assert [is_red(row) for row in (fresh, closed, stale)] == [False, False, True]
    assert "closed quoted 22 h ago" in words(closed)
    assert change(eurusd) in fresh
    for shown in ("1.08410", "1.08424", "1,234,567", "−1,250.00", "kraken"):
        assert shown in words(fresh)
    assert "open quoted 0.0 s ago" in words(fresh).replace("check_circle ", "")
    assert "stale quoted 61 s ago" in words(stale)


def test_instrument_that_nobody_publishes_on_says_why(office: Office) -> None:
    for symbol in ("AAPL", "EURUSD", "XAUUSD"):
        make_instrument(symbol)
    tell(unsettled=("EURUSD", "XAUUSD"), lagging=("XAUUSD",))
    labels = [
        re.findall(r"status-warn\">(\w+)<", row_of(office, symbol)) for symbol in ("AAPL", "EURUSD", "XAUUSD")
    ]
    assert labels == [[], ["unsettled"], ["unsettled", "lagging"]]


def test_stale_instruments_stand_first(office: Office) -> None:
    for symbol in ("AAPL", "EURUSD", "XAUUSD"):
        make_instrument(symbol)
    put_quote("AAPL")
    put_quote("EURUSD")

    assert re.findall(r'change/">(\w+)</a>', page(office)) == ["XAUUSD", "AAPL", "EURUSD"]
    never = row_of(office, "XAUUSD")
    assert (is_red(never), "never quoted" in never) == (True, True)


def test_fallback_has_a_badge_and_since_when(office: Office, clock: Traveller) -> None:
    make_instrument("EURUSD")
    make_instrument("USDJPY")
    stands_in: dict[str, Any] = {
        "feed": "binance",
        "feeds": ("kraken", "binance"),
        "switched_ms": now_ms(),
        "switches": 1,
    }
    tell(instruments=(make_instrument_status(**stands_in), make_instrument_status("USDJPY")))

    assert "binance fallback since 18 Nov, 12:00:00 , 1 switch" in words(row_of(office, "EURUSD"))
    assert "fallback" not in row_of(office, "USDJPY")


def test_lost_source_is_red_with_its_reason_and_one_that_was_not_heard_yet_is_listed(office: Office) -> None:
    make_instrument()
    refused, complaints = {"crossed": 2, "standby": 1500}, ("DOGEUSDX is not served: <not> listed",)
    lost = make_feed_status(state="lost", why="closed by <Kraken>", refused=refused, complaints=complaints)
    tell((lost,), (make_instrument_status(feeds=("kraken", "push")),))

    row = row_of(office, "kraken")

    assert is_red(row)
    assert "lost since" in words(row)
    assert "closed by &lt;Kraken&gt;" in row
    assert "standby 1,500 crossed 2" in words(row)
    assert "DOGEUSDX is not served: &lt;not&gt; listed" in row
    assert "prices 1 instrument" in row
    assert "not heard yet" in row_of(office, "push")
    assert "kraken: closed by &lt;Kraken&gt;" in row_of(office, "EURUSD")


@pytest.mark.parametrize("redis_url", ["", "redis://127.0.0.1:1"])
def test_no_engine_is_told_with_the_way_out(
    office: Office, clock: Traveller, settings: Settings, redis_url: str
) -> None:
    settings.REDIS_URL = redis_url
    assert "This process has not received a report from an engine since it started" in page(office)
    tell(writer="")
    assert "Another process writes the candles of this database" in page(office)
    tell((make_feed_status(),))
    before = page(office)
    clock.shift(5.001)
    after = page(office)

    assert "No engine is running" not in before
    assert "No engine is running" in after
    assert "manage.py run_engine" in after
    assert "It was last heard 5.0 s ago" in after
    assert "unknown" in row_of(office, "kraken")


@pytest.mark.parametrize(("off_ms", "words"), [(290_000, "4 min ahead of it"), (-300_000, "5 min behind it")])
def test_clock_that_was_set_is_told_while_it_differs(office: Office, off_ms: int, words: str) -> None:
    tell(clock_off_ms=off_ms)
    off = page(office)
    tell()

    assert "The machine's clock was set" in off
    assert words in off
    assert "The machine's clock was set" not in page(office)


def test_page_is_cheap(office: Office, django_assert_max_num_queries: DjangoAssertNumQueries) -> None:
    symbols = [f"SYM{number}" for number in range(30)]
    for symbol in symbols:
        make_instrument(symbol)
    tell((make_feed_status(),), tuple(make_instrument_status(symbol) for symbol in symbols))

    with django_assert_max_num_queries(6):
        office.get(PAGE)


def test_it_is_for_staff_who_may_see_instruments_and_candles() -> None:
    seen = {}
    for names in ((), ("view_instrument",), ("view_candle",), ("view_instrument", "view_candle")):
        user = make_user(is_staff=True)
        user.user_permissions.set(Permission.objects.filter(codename__in=names))
        reader = Office(user)
        seen[names] = reader.get(PAGE).status_code, PAGE in text_of(reader.get("/admin/"))

    assert [*seen.values()] == [(403, False), (403, False), (403, False), (200, True)]
    customer = Client()
    customer.force_login(make_user())
    assert customer.get(PAGE, follow=True).status_code == 403
    # Nothing of it is kept, and nothing can be sent.
    assert "no-store" in reader.get(PAGE)["Cache-Control"]
    assert reader.post(PAGE).status_code == 405
    assert Client().get(PAGE)["Location"].startswith("/admin/login/?next=")
