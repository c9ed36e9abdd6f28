"""Walks over history: page by page to the end, through whatever happens on the way."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tickwire import ApiError, AsyncClient, Candle, Client, Page, ServiceUnreachable, WalkInterrupted
from tickwire.answers import wait_before_going_on
from tickwire.errors import Address
from tickwire.pages import JSON, Place, Route

from tests.patience import PATIENCE_S

from .keeping import (
    BUSY,
    CUT_SHORT,
    HUNG_UP,
    IN_FRONT,
    MINUTE_MS,
    START_MS,
    Keeper,
    Mishap,
    as_csv,
    keeping,
    make_candles,
)

pytestmark = [pytest.mark.served, pytest.mark.usefixtures("waits")]

KEY = "tw_live_any"
Walked = Callable[..., list[Candle]]
Serve = Callable[..., Keeper]


@pytest.fixture
def serve() -> Iterator[Serve]:
    with ExitStack() as stack:
        yield lambda *given: stack.enter_context(keeping(Keeper(*given)))


def walked_waiting(url: str, **asked: Any) -> list[Candle]:
    with Client(KEY, url) as client:
        return list(client.history("EURUSD", "1m", **asked))


def walked_asynchronously(url: str, **asked: Any) -> list[Candle]:
    async def walk() -> list[Candle]:
        async with AsyncClient(KEY, url) as client:
            return [candle async for candle in client.history("EURUSD", "1m", **asked)]

    return asyncio.run(asyncio.wait_for(walk(), PATIENCE_S))


@pytest.fixture(params=[walked_waiting, walked_asynchronously], ids=["Client", "AsyncClient"])
def walked(request: pytest.FixtureRequest) -> Walked:
    walk: Walked = request.param
    return walk


def test_walk_has_every_candle_once_and_in_order_through_whatever_happens(
    serve: Serve, walked: Walked, waits: list[float]
) -> None:
    mishaps = [BUSY, CUT_SHORT, HUNG_UP, BUSY, *[IN_FRONT, CUT_SHORT, HUNG_UP] * 2]
    keeper = serve(make_candles(1_050), {2 * number: each for number, each in enumerate(mishaps)})
    assert walked(keeper.url, limit=100) == keeper.candles
    assert waits.count(1) >= 2
    cursors = [request.query.get("cursor") for request in keeper.asked]
    assert [cursors[2 * n] for n in range(10)] == [cursors[2 * n + 1] for n in range(10)]
    assert (len(cursors), len(set(cursors))) == (21, 11)
    start = datetime.fromtimestamp(START_MS / 1000, UTC) + timedelta(minutes=10)
    of_span = walked(keeper.url, start=start, end=START_MS + 20 * MINUTE_MS)
    assert of_span == keeper.candles[10:20]
    keeper.candles.clear()
    assert walked(keeper.url) == []


def test_whole_pages_are_had_with_their_cursors_or_as_csv(serve: Serve) -> None:
    keeper = serve(make_candles(250), {1: HUNG_UP, 3: HUNG_UP})
    # A page that came makes the count of failures begin anew.
    with Client(KEY, keeper.url, walk_retries=1) as client:
        history = client.history("EURUSD", "1m", limit=100)
        pages, texts = list(history.pages()), list(history.csv_pages())
        later = list(client.history("EURUSD", "1m", limit=100, cursor=pages[0].next))
    assert [len(page) for page in pages] == [100, 100, 50]
    assert pages[-1].next is None
    assert later == keeper.candles[100:]
    assert texts == [as_csv(keeper.candles[begin : begin + 100]) for begin in (0, 100, 200)]


def test_first_page_is_asked_for_again_unless_it_is_refused(serve: Serve, walked: Walked) -> None:
    keeper = serve(make_candles(150), {0: CUT_SHORT, 1: HUNG_UP, 2: CUT_SHORT, 3: HUNG_UP, 6: IN_FRONT})
    assert walked(keeper.url, limit=100) == keeper.candles
    assert len(keeper.asked) == 6
    with pytest.raises(ApiError, match="answered 502"):
        walked(keeper.url)
    with pytest.raises(ApiError) as refused:
        walked(keeper.url, cursor="5.altered")
    assert (refused.value.code, len(keeper.asked)) == ("invalid_cursor", 8)


def test_pages_that_fail_again_and_again_end_the_walk_with_a_place_to_go_on(serve: Serve) -> None:
    keeper = serve(make_candles(300), dict.fromkeys(range(1, 4), HUNG_UP))
    came: list[Candle] = []
    with Client(KEY, keeper.url, walk_retries=2) as client:
        history = client.history("EURUSD", "1m", limit=100)
        with pytest.raises(WalkInterrupted, match="could not be read in 3 attempts") as ended:
            came.extend(history)
        rest = list(client.history("EURUSD", "1m", limit=100, cursor=ended.value.cursor))
    assert len(came) == 100
    assert came + rest == keeper.candles
    assert isinstance(ended.value.__cause__, httpx.TransportError)


def test_service_that_is_not_there_is_said_as_soon_as_by_any_call(walked: Walked) -> None:
    """By an error of the library, which those who wait for one of httpx catch as well."""
    with pytest.raises(ServiceUnreachable, match="could not be reached at http://127.0.0.1:9: ") as ended:
        walked("http://127.0.0.1:9")
    assert isinstance(ended.value, WalkInterrupted)
    assert isinstance(ended.value, httpx.TransportError)
    assert ended.value.request.url.path == "/api/market/EURUSD/history"
    assert isinstance(ended.value.__cause__, httpx.ConnectError)
    assert ended.value.cursor is None


def test_first_page_that_never_comes_ends_the_walk_with_nothing_to_go_on_after(serve: Serve) -> None:
    keeper = serve(make_candles(10), dict.fromkeys(range(9), HUNG_UP))
    said = "The first page .* in 2 attempts.*start again"
    with (
        Client(KEY, keeper.url, walk_retries=1) as client,
        pytest.raises(WalkInterrupted, match=said) as ended,
    ):
        list(client.history("EURUSD"))
    assert (ended.value.cursor, isinstance(ended.value, ServiceUnreachable)) == (None, False)


def test_first_page_goes_on_over_a_restart_once_the_service_was_reached() -> None:
    place = Place(Route("news", "items", {}), JSON, Address("", "", 10), retries=0, walk_retries=2)
    assert place.wait_after(httpx.ReadError("reset")) == 0.25
    assert place.wait_after(httpx.ConnectError("refused")) == 0.5


@pytest.mark.parametrize(
    ("moment", "sent"),
    [
        (datetime(2026, 11, 20, 14, tzinfo=UTC), "2026-11-20T14:00:00Z"),
        ("2026-11-20T14:00:00Z", "2026-11-20T14:00:00Z"),
        (START_MS, str(START_MS)),
    ],
)
def test_span_is_a_datetime_a_text_or_milliseconds(serve: Serve, moment: Any, sent: str) -> None:
    keeper = serve(make_candles(1))
    walked_waiting(keeper.url, start=moment)
    assert keeper.asked[0].query["start"] == sent


def test_datetime_without_a_zone_is_refused() -> None:
    with Client(KEY, "http://127.0.0.1:9") as client, pytest.raises(ValueError, match="end needs a zone"):
        client.history("EURUSD", end=datetime(2026, 11, 20))  # noqa: DTZ001


def pages_in_memory() -> list[Page[Any]]:
    # No lazy object of another test may wake up when it is looked at.
    return [each for each in gc.get_objects() if type(each) is Page]


def test_pages_that_were_read_are_not_kept(serve: Serve) -> None:
    keeper = serve(make_candles(2_000))
    # Those of other tests, which nobody has collected yet.
    others = pages_in_memory()
    most = 0
    with Client(KEY, keeper.url) as client:
        for number, _ in enumerate(client.history("EURUSD", "1m", limit=100)):
            if number % 100 == 50:
                most = max(most, len(pages_in_memory()) - len(others))
    assert most == 1


@settings(max_examples=25)
@given(
    count=st.integers(0, 60),
    limit=st.integers(1, 25),
    mishaps=st.dictionaries(st.integers(1, 30), st.sampled_from([CUT_SHORT, HUNG_UP]), max_size=2),
)
def test_no_candle_is_lost_or_repeated_whatever_the_pages(
    count: int, limit: int, mishaps: dict[int, Mishap]
) -> None:
    with keeping(Keeper(make_candles(count), mishaps)) as keeper:
        assert walked_waiting(keeper.url, limit=limit) == keeper.candles


@pytest.mark.parametrize(
    ("failure", "wait_s"),
    [
        (httpx.ReadError("reset"), 1.0),
        (ApiError(429, {"code": "rate_limit_exceeded"}, 7), 7),
        (ApiError(503, {"code": "overloaded"}, 3), 3),
        (ApiError(503, {"code": "overloaded"}, 600), None),
        (ApiError(502, {}), 1.0),
        (ApiError(400, {"code": "invalid_cursor"}), None),
        (ApiError(403, {"code": "not_allowed"}), None),
    ],
)
def test_what_is_worth_waiting_for(failure: Exception, wait_s: float | None) -> None:
    assert wait_before_going_on(failure, 2) == wait_s
