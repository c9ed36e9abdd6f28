"""Walks through history while candles close, and which candles they may not have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from itertools import count

import pytest
import time_machine
from hypothesis import given, settings
from hypothesis import strategies as st

from core.times import MINUTE_MS, epoch_ms
from instruments.catalogue import catalogue
from instruments.models import WithheldSource
from market.models import LastQuote
from tests.accounts.browser import logged_in, token_of
from tests.client import Api, Server
from tests.contract.answers import refusal
from tests.factories import NOON, make_account, make_instrument, make_key, make_user

from .stored_minutes import NOON_MS, minutes, store, times

numbers = count()


def ask(shared: Api, symbol: str, query: str = "") -> list[int]:
    answer = shared.ask(f"/api/market/{symbol}/history?{query}")
    assert answer.status_code == 200, answer.text
    return times(answer.json())


# A page is asked for with a limit, after some minutes have closed.
@settings(max_examples=30)
@given(
    stored=st.integers(0, 1_300),
    pages=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 600)), min_size=1, max_size=6),
)
def test_walk_loses_and_repeats_no_time_while_candles_close(
    shared: Api, stored: int, pages: list[tuple[int, int]]
) -> None:
    symbol = f"WALK{next(numbers)}"
    make_instrument(symbol)
    store(symbol, minutes(stored))
    walked, cursor = [], ""
    for closing, limit in [*pages, *[(1, 10_000)] * 9]:
        store(symbol, minutes(closing, first=stored))
        stored += closing
        body = shared.ask(f"/api/market/{symbol}/history?limit={limit}{cursor}").json()
        assert body["count"] == len(body["ohlcv"]) <= limit
        walked += times(body)
        if body["next"] is None:
            break
        cursor = f"&cursor={body['next']}"

    assert body["next"] is None
    assert walked == [NOON_MS + number * MINUTE_MS for number in range(stored)]


def test_walk_without_an_end_goes_up_to_the_moment_it_began(
    clock: time_machine.Traveller, server: Server
) -> None:
    make_instrument("EURUSD")
    store("EURUSD", minutes(20, from_ms=epoch_ms(NOON)))
    clock.move_to(NOON + timedelta(minutes=10))
    with Api(server, make_key()) as api:
        first = api.ask("/api/market/EURUSD/history?limit=4").json()
        clock.move_to(NOON + timedelta(minutes=30))
        rest = api.ask(f"/api/market/EURUSD/history?limit=100&cursor={first['next']}").json()
        anew = api.ask("/api/market/EURUSD/history?limit=100").json()

    assert (first["count"], rest["count"], rest["next"]) == (4, 6, None)
    assert anew["count"] == 20


# Simulated and real


def put_kind(symbol: str, *, simulated: bool) -> None:
    LastQuote.objects.update_or_create(
        instrument_id=catalogue.get_any(symbol).id, defaults={"simulated": simulated}
    )


def test_only_candles_of_the_present_kind_are_answered(shared: Api) -> None:
    make_instrument("KINDS")
    store("KINDS", minutes(3))
    store("KINDS", minutes(2, source="demo"))

    put_kind("KINDS", simulated=True)
    assert len(ask(shared, "KINDS")) == 2
    put_kind("KINDS", simulated=False)
    assert len(ask(shared, "KINDS")) == 3


def test_walk_does_not_go_on_in_the_other_kind(shared: Api) -> None:
    make_instrument("TURNED")
    store("TURNED", minutes(3))
    put_kind("TURNED", simulated=False)
    cursor = shared.ask("/api/market/TURNED/history?limit=1").json()["next"]

    put_kind("TURNED", simulated=True)

    refused = shared.ask(f"/api/market/TURNED/history?limit=1&cursor={cursor}")
    assert "simulated and real" in refusal(refused, 400, "invalid_cursor", field="cursor")


# What may not be handed on


@contextmanager
def withheld(name: str) -> Iterator[None]:
    source = WithheldSource.objects.create(name=name, why="Its terms.")
    catalogue.load_now()
    yield
    source.delete()
    catalogue.load_now()


def test_candles_of_a_withheld_source_are_left_out(shared: Api) -> None:
    make_instrument("MIXED")
    store("MIXED", minutes(5, source="oanda"))
    store("MIXED", minutes(1, first=5, source="kraken+oanda"))
    # So many that REST serves nothing older by its other paths.
    store("MIXED", minutes(600, first=6))
    assert len(ask(shared, "MIXED")) == 606

    with withheld("oanda"):
        walked = ask(shared, "MIXED")
        csv = shared.ask("/api/market/MIXED/history", headers={"Accept": "text/csv"}).text

    assert walked == [NOON_MS + number * MINUTE_MS for number in range(6, 606)]
    assert len(csv.splitlines()) == 601


def test_withheld_instrument_has_no_history(shared: Api) -> None:
    make_instrument("HIDDEN")
    store("HIDDEN", minutes(5, source="oanda"))

    with withheld("oanda"):
        refused = shared.ask("/api/market/HIDDEN/history")

    assert "terms" in refusal(refused, 404, "symbol_not_found", field="symbol")


# Our own pages


@pytest.fixture
def page_token(shared: Api) -> str:
    return token_of(logged_in(make_account(make_user(), tier="roomy").user))


@pytest.fixture(scope="module")
def paged(shared: Api) -> str:
    make_instrument("PAGED")
    store("PAGED", minutes(1_300))
    return "/api/market/PAGED/history"


def test_page_reads_a_thousand_bars_and_no_more(shared: Api, paged: str, page_token: str) -> None:
    whole = shared.ask(f"{paged}?limit=1000", key=page_token)
    assert whole.json()["count"] == 1_000

    over = shared.ask(f"{paged}?limit=1001", key=page_token)
    message = refusal(over, 403, "not_allowed", field="limit", max=1_000)
    assert "settings panel" in message
    beyond = shared.ask(f"{paged}?limit=1&cursor={whole.json()['next']}", key=page_token)
    refusal(beyond, 403, "not_allowed", field="cursor")


def test_page_cannot_go_beyond_in_several_steps(shared: Api, paged: str, page_token: str) -> None:
    first = shared.ask(f"{paged}?limit=600", key=page_token).json()
    refused = shared.ask(f"{paged}?limit=600&cursor={first['next']}", key=page_token)
    refusal(refused, 403, "not_allowed", field="cursor")
    assert shared.ask(f"{paged}?limit=400&cursor={first['next']}", key=page_token).json()["count"] == 400


def test_key_reads_on_from_a_pages_cursor(shared: Api, paged: str, page_token: str) -> None:
    cursor = shared.ask(f"{paged}?limit=1000", key=page_token).json()["next"]
    assert shared.ask(f"{paged}?limit=10000&cursor={cursor}").json()["count"] == 300
