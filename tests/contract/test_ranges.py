"""`start`, `end` and `cursor` of /api/signals and /api/news: the whole past, page by page."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from core.times import epoch_ms, iso_time
from instruments.models import Instrument
from news.models import NewsItem
from signals_feed.models import Signal
from tests.client import Api
from tests.contract.answers import refusal
from tests.factories import NOON, make_instrument, make_news, make_signal, make_user

SIGNALS, NEWS = "/api/signals?status=all", "/api/news?expand=id"
# Two rows have each time, and two lie between two milliseconds.
TIMES = [NOON - timedelta(minutes=number // 2) for number in range(12)]
TIMES += [NOON - timedelta(seconds=1, microseconds=499), NOON - timedelta(seconds=1, microseconds=501)]


@pytest.fixture(scope="module", autouse=True)
def feed(shared: Api) -> None:
    user = make_user("anna")
    instruments = [make_instrument("EURUSD"), make_instrument("XAUUSD")]
    for number, at in enumerate(TIMES):
        status = "closed" if number % 3 else "active"
        make_signal(instruments[number % 2], user, published_at=at, status=status)
        make_news(f"n {number}", category=("gold", "macro", "forex")[number % 3], published_at=at)


@pytest.fixture(params=[SIGNALS, NEWS], ids=["signals", "news"])
def path(request: pytest.FixtureRequest) -> str:
    chosen: str = request.param
    return chosen


def ask(shared: Api, path: str, **query: Any) -> dict[str, Any]:
    named = "".join(f"&{name}={quote(str(value))}" for name, value in query.items())
    answer = shared.ask(path + named)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


def ids(answer: dict[str, Any]) -> list[Any]:
    return [item["id"] for item in answer["items"]]


def walk(
    shared: Api,
    path: str,
    limits: list[int],
    between: Callable[[int], object] = lambda page: None,
    **query: Any,
) -> list[Any]:
    """What all pages have, with these limits in turn."""
    found: list[Any] = []
    cursor: dict[str, str] = {}
    for number in range(200):
        page = ask(shared, path, limit=limits[number % len(limits)], **query, **cursor)
        found += ids(page)
        if page["next"] is None:
            return found
        cursor = {"cursor": page["next"]}
        between(number)
    raise AssertionError("The walk does not end.")


EVER = "1970-01-01T00:00:00Z"


def test_range_adds_next_and_nothing_else(shared: Api, path: str) -> None:
    without, within = ask(shared, path, limit=500), ask(shared, path, limit=500, start=EVER)
    assert "next" not in without
    assert within == without | {"next": None}
    assert ask(shared, path, end=iso_time(NOON))["next"] is None
    page = ask(shared, path, start=EVER, limit=2)
    assert isinstance(page["next"], str)
    assert page.get("count", 2) == len(page["items"]) == 2


def test_start_is_inclusive_and_end_exclusive(shared: Api, path: str) -> None:
    start, end = NOON - timedelta(minutes=3), NOON - timedelta(minutes=1)
    for asked in (
        {"start": iso_time(start), "end": iso_time(end)},
        {"start": epoch_ms(start), "end": epoch_ms(end)},
    ):
        times = [item["timestamp"] for item in ask(shared, path, **asked)["items"]]
        assert times == [iso_time(NOON - timedelta(minutes=number)) for number in (2, 2, 3, 3)]


def test_range_goes_by_the_timestamp_that_is_shown(shared: Api, path: str) -> None:
    shown = iso_time(NOON - timedelta(seconds=1, milliseconds=1))
    after = iso_time(NOON - timedelta(seconds=1))
    assert [item["timestamp"] for item in ask(shared, path, start=shown, end=after)["items"]] == [shown] * 2
    assert ask(shared, path, start=after, end=after)["items"] == []


@settings(max_examples=20)
@given(limits=st.lists(st.integers(1, 7), min_size=1, max_size=4))
def test_pages_together_are_the_whole_in_its_order(shared: Api, limits: list[int]) -> None:
    for path in (SIGNALS, NEWS):
        assert walk(shared, path, limits, start=EVER) == ids(ask(shared, path, limit=500))


@pytest.mark.parametrize(
    "path",
    [
        "/api/signals?status=active",
        "/api/signals?status=closed&symbol=xauusd",
        "/api/signals?status=all&symbol=EURUSD&user=anna",
        "/api/news?expand=id,symbols&category=gold",
        "/api/news?expand=id&category=forex,gold",
        "/api/news?expand=id&category=forex,gold,macro,crypto",
    ],
)
def test_filters_hold_on_every_page(shared: Api, path: str) -> None:
    whole = ids(ask(shared, path, limit=500))
    assert len(whole) > 1
    assert walk(shared, path, [1, 2], start=EVER) == whole


@settings(max_examples=10)
@given(limits=st.lists(st.integers(1, 5), min_size=1, max_size=3), every=st.integers(1, 3))
def test_walk_loses_and_repeats_nothing_while_more_is_published_and_closed(
    shared: Api, limits: list[int], every: int
) -> None:
    instrument, anna = Instrument.objects.get(symbol="EURUSD"), make_user()

    def go_on(page: int) -> None:
        if page < 5 and page % every == 0:
            make_signal(instrument, anna, published_at=NOON + timedelta(minutes=5))
            make_news("Newer", published_at=NOON + timedelta(minutes=5))
            # Older than where the walk is, as a draft that staff publish late.
            make_news("Older", published_at=NOON - timedelta(days=1))

    try:
        for path, known in ((SIGNALS, Signal.objects), (NEWS, NewsItem.objects)):
            before = ids(ask(shared, path, limit=500))
            found = walk(shared, path, limits, go_on, start=EVER)
            assert len(found) == len(set(found))
            assert [each for each in found if each in set(before)] == before
            assert known.count() > len(before)
    finally:
        NewsItem.objects.filter(title__in=("Newer", "Older")).delete()


def test_no_page_follows_one_that_the_rest_just_fills(shared: Api, path: str) -> None:
    whole = ids(ask(shared, path, limit=500, end=iso_time(NOON)))
    assert ask(shared, path, limit=len(whole), end=iso_time(NOON))["next"] is None
    assert ask(shared, path, limit=len(whole) - 1, end=iso_time(NOON))["next"] is not None


# Signals by when they were closed: one each minute after noon, the oldest last.
@pytest.fixture(scope="module")
def closes(shared: Api, feed: None) -> list[str]:
    instrument, bela = make_instrument("XAGUSD"), make_user("bela")
    make_signal(instrument, bela, published_at=NOON - timedelta(hours=2))
    closed = [
        make_signal(
            instrument,
            bela,
            status="closed",
            published_at=NOON - timedelta(hours=2, minutes=number),
            closed_at=NOON + timedelta(minutes=number),
        )
        for number in range(6)
    ]
    return [str(signal.pk) for signal in closed]


@pytest.mark.parametrize("status", ["closed", "all"])
@pytest.mark.parametrize(
    ("closed", "first", "last"),
    [
        ({"closed_start": iso_time(NOON + timedelta(minutes=2))}, 2, 6),
        ({"closed_start": epoch_ms(NOON + timedelta(minutes=2)) + 1}, 3, 6),
        ({"closed_end": iso_time(NOON + timedelta(minutes=2))}, 0, 2),
        ({"closed_start": epoch_ms(NOON), "closed_end": epoch_ms(NOON + timedelta(minutes=5))}, 0, 5),
        ({"closed_start": "2020-01-01", "closed_end": "2100-01-01"}, 0, 6),
        ({"closed_start": epoch_ms(NOON), "end": epoch_ms(NOON - timedelta(hours=2, minutes=2))}, 3, 6),
    ],
)
def test_signals_are_found_by_when_they_were_closed(
    shared: Api, closes: list[str], status: str, closed: dict[str, Any], first: int, last: int
) -> None:
    path = f"/api/signals?status={status}&user=bela"
    assert walk(shared, path, [1, 2], **closed) == closes[first:last]
    assert ask(shared, path, **closed)["next"] is None


def test_cursor_belongs_to_its_range_of_closes(shared: Api, closes: list[str]) -> None:
    path = "/api/signals?status=closed&user=bela"
    cursor = ask(shared, path, closed_start=EVER, limit=1)["next"]
    for other in ("", f"&closed_end={EVER}", "&closed_start=2026-11-19", f"&start={EVER}"):
        answer = shared.ask(f"{path}{other}&cursor={quote(cursor)}")
        refusal(answer, 400, "invalid_cursor", field="cursor")


@pytest.mark.parametrize(
    ("query", "details"),
    [
        ("closed_start=2026-11-20", {"field": "status", "allowed": ["closed", "all"]}),
        ("status=active&closed_end=2026-11-20", {"field": "status", "allowed": ["closed", "all"]}),
        ("status=all&closed_start=2026-11-20&closed_end=2026-11-19", {"field": "closed_end"}),
    ],
)
def test_range_of_closes_that_can_hold_none_is_refused(
    shared: Api, query: str, details: dict[str, Any]
) -> None:
    refusal(shared.ask(f"/api/signals?{query}"), 400, "invalid_parameter", **details)


# What is refused.
def test_altered_or_foreign_cursor_is_invalid(shared: Api) -> None:
    of_signals = ask(shared, SIGNALS, limit=1, start=EVER)["next"]
    of_news = ask(shared, NEWS, limit=1, start=EVER)["next"]
    started = f"&start={EVER}"
    for path, cursor in (
        (SIGNALS + started, of_news),
        (NEWS + started, of_signals),
        (SIGNALS + started, of_signals[:-1] + ("A" if of_signals[-1] != "A" else "B")),
        (SIGNALS + started, ""),
        (SIGNALS, of_signals),
        (f"{SIGNALS}&symbol=EURUSD{started}", of_signals),
        (f"/api/signals?status=active{started}", of_signals),
        (f"{NEWS}&category=gold{started}", of_news),
        (f"{SIGNALS}&start=0&end=1", of_signals),
    ):
        answer = shared.ask(f"{path}&cursor={quote(cursor)}")
        refusal(answer, 400, "invalid_cursor", field="cursor")


def test_limit_and_expand_may_differ_from_page_to_page(shared: Api) -> None:
    cursor = ask(shared, NEWS, limit=1, start=EVER)["next"]
    page = ask(shared, "/api/news?expand=id,source", limit=2, start=EVER, cursor=cursor)
    assert set(page["items"][0]) >= {"id", "source"}


def test_seconds_are_not_taken_for_milliseconds(shared: Api, path: str) -> None:
    message = refusal(shared.ask(f"{path}&start=1764000000"), 400, "invalid_parameter", field="start")
    assert "1970-01-21T10:00:00.000Z" in message
    assert "1764000000000" in message
