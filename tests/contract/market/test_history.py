"""Every stored candle, page by page: which, in which form, and through what happens on the way."""

from __future__ import annotations

import gzip
import sys
from datetime import datetime
from itertools import count
from typing import Any

import pyarrow.ipc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs
from time_machine import Traveller

from core.clock import now_ms
from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.models import Instrument
from market import runtime
from market.models import LastQuote
from market.prices.candles import PriceBar
from market.prices.records import Tick
from market.store import candle_rows
from tests.accounts.browser import logged_in, token_of
from tests.client import Api
from tests.contract.answers import SECONDS, refusal, to_ms
from tests.databases.queries import count_queries
from tests.factories import make_account, make_candle, make_instrument, make_user, put_quote

from .stored_minutes import (
    ARROW,
    CSV,
    NOON_MS,
    PATH,
    STORED,
    ask,
    minutes,
    page,
    store,
    times,
    walk,
    withheld,
)

pytestmark = pytest.mark.services

numbers = count()


@pytest.fixture(scope="module", autouse=True)
def instruments(shared: Api) -> None:
    for symbol in ("EURUSD", "EMPTY", "OTHER"):
        make_instrument(symbol)
    store("EURUSD", minutes(STORED))
    store("OTHER", minutes(2))


def test_body_has_exactly_the_fields_of_the_contract(shared: Api) -> None:
    for path in (PATH, "/api/market/eurusd/history/"):
        answer = shared.ask(path)
        assert answer.headers["Content-Type"] == "application/json"
        body = answer.json()
        assert set(body) == {"symbol", "timeframe", "ohlcv", "count", "next"}
        assert (body["symbol"], body["timeframe"], body["count"]) == ("EURUSD", "1m", 1_000)
        assert len(body["ohlcv"]) == 1_000
        assert all(set(c) == {"time", "open", "high", "low", "close", "volume"} for c in body["ohlcv"])
        assert all(SECONDS.fullmatch(candle["time"]) for candle in body["ohlcv"])
    empty = {"symbol": "EMPTY", "timeframe": "1m", "ohlcv": [], "count": 0, "next": None}
    assert shared.ask("/api/market/EMPTY/history").json() == empty


def test_page_that_holds_the_last_has_no_next(shared: Api) -> None:
    pages = [page(shared, f"limit={limit}") for limit in (STORED - 1, STORED, STORED + 1, 10_000)]
    assert [body["next"] is None for body in pages] == [False, True, True, True]
    assert [body["count"] for body in pages] == [STORED - 1, STORED, STORED, STORED]


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


def test_row_is_the_bar_of_the_market_path_digit_for_digit(shared: Api) -> None:
    make_instrument("BOTH")
    # One whose prices are exactly between two of the instrument's digits is rounded as a float is.
    odd = [
        *((1.08412, 0.1 + 0.2), (0.00003, 0.00000001), (123456.7, 12_345_678.12345678)),
        *((1.084125, 9e15), (1.5, 1e14 / 3)),
    ]
    bars = [
        PriceBar(NOON_MS + number * MINUTE_MS, price, price, price, price, volume, price, price)
        for number, (price, volume) in enumerate(odd)
    ]
    store("BOTH", bars)
    kept = candle_rows.read_candles(catalogue.get("BOTH"), "1m")
    runtime.prices.history(catalogue.get("BOTH")).restore_all("1m", kept)
    put_quote("BOTH")
    texts = [
        shared.ask(f"/api/market/BOTH{rest}").text for rest in ("?timeframe=1m&closed_only=true", "/history")
    ]
    of_market, of_history = (text.partition('"ohlcv":[')[2].partition("]")[0] for text in texts)
    assert len(of_market) > 300
    assert of_history == of_market


def test_candle_says_on_request_what_it_is_made_of_and_whether_it_is_whole(shared: Api) -> None:
    symbol = "MADE"
    make_instrument(symbol)
    facts, history = catalogue.get(symbol), runtime.prices.history(catalogue.get(symbol))
    made = [
        ("kraken", "trades", {}),
        ("oanda", "bid", {"by_venue": True}),
        ("oanda+import", "bid", {"by_venue": True, "partial": True}),
        ("kraken", "bid", {"partial": True}),
    ]
    for bar, (source, basis, more) in zip(minutes(4), made, strict=True):
        bar = structs.replace(bar, source=source, **more)
        candle_rows.write_candles([(facts.id, "1m", bar, basis)])
    history.restore_all("1m", candle_rows.read_candles(facts, "1m"))
    put_quote(symbol)
    history.add(NOON_MS + 4 * MINUTE_MS, 1.08, 1.08, 1.0)

    stored = [("trades", False), ("venue", False), ("import", True), ("ticks", True)]
    bodies = [
        shared.ask(f"/api/market/{symbol}{rest}&expand=basis").json()
        for rest in ("/history?", "?timeframe=1m")
    ]
    found = [[(candle["basis"], candle["partial"]) for candle in body["ohlcv"]] for body in bodies]
    assert found == [stored, [*stored, (None, None)]]
    path, header = (
        f"/api/market/{symbol}/history?expand=basis",
        "time,open,high,low,close,volume,basis,partial",
    )
    text = shared.ask(path, headers={"Accept": CSV}).text
    assert [text.partition("\n")[0], text.splitlines()[3][-12:]] == [header, ",import,true"]
    table = pyarrow.ipc.open_stream(shared.ask(path, headers={"Accept": ARROW}).content).read_all()
    assert [*zip(*(table[name].to_pylist() for name in ("basis", "partial")), strict=True)] == stored


def test_no_number_has_an_exponent(shared: Api) -> None:
    make_instrument("SMALL", digits=8)
    store("SMALL", [PriceBar(NOON_MS, 1e-7, 3e-5, 1e-7, 2e-6, 1e-8, 3e-5, 1e-7)])
    for accept in ("*/*", CSV):
        answer = shared.ask("/api/market/SMALL/history", headers={"Accept": accept})
        assert "0.0000001" in answer.text
        assert "e-" not in answer.text


@pytest.mark.parametrize("digits", [0, 1, 3])
def test_whole_prices_are_floats(shared: Api, digits: int) -> None:
    symbol = f"WHOLE{digits}"
    make_instrument(symbol, digits=digits)
    store(symbol, [PriceBar(NOON_MS, 100.0, 110.0, 90.0, 100.0, 20.0, 110.0, 90.0)])
    text = shared.ask(f"/api/market/{symbol}/history").text
    assert '"open":100.0,"high":110.0,"low":90.0,"close":100.0,"volume":20.0}' in text


def test_each_timeframe_is_a_series_of_its_own(shared: Api) -> None:
    make_candle(Instrument.objects.get(symbol="EURUSD"), "1h")
    assert page(shared, "timeframe=1h")["count"] == 1


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("start=2020-03-04T12:01:00Z&end=2020-03-04T12:04:00Z", [1, 2, 3]),
        (f"start={NOON_MS + MINUTE_MS}&end={NOON_MS + 4 * MINUTE_MS}", [1, 2, 3]),
        ("start=2020-03-04T14:01:00%2B02:00&end=2020-03-04T14:04:00%2B02:00", [1, 2, 3]),
        (f"start={NOON_MS + 1}&limit=1", [1]),
        (f"start={NOON_MS}&end={NOON_MS}", []),
        ("start=9999-12-31T23:59:59Z", []),
    ],
)
def test_start_is_included_and_end_is_not(shared: Api, query: str, found: list[int]) -> None:
    assert times(page(shared, query)) == [NOON_MS + number * MINUTE_MS for number in found]


def test_end_of_a_walk_holds_for_all_its_pages(shared: Api) -> None:
    pages = walk(shared, f"limit=2&end={NOON_MS + 5 * MINUTE_MS}")
    assert [body["count"] for body in pages] == [2, 2, 1]


def test_cursor_that_was_altered_or_is_of_other_parameters_is_refused(shared: Api) -> None:
    cursor = page(shared, "limit=2")["next"]
    body, _, signature = cursor.partition(".")
    other = "B" if body[3] != "B" else "C"
    wrong = [
        *(
            f"{body[:3]}{other}{body[4:]}.{signature}",
            f"{body}.{signature[:-2]}",
            f"{body}.",
            body,
            "",
            "null",
        ),
        *(
            "x" * 600,
            *(f"{cursor}&{more}" for more in ("timeframe=5m", "start=0", f"end={NOON_MS + 9_000_000}")),
        ),
    ]
    for each in wrong:
        refusal(ask(shared, f"limit=2&cursor={each}"), 400, "invalid_cursor", field="cursor")
    of_other = shared.ask(f"/api/market/OTHER/history?cursor={cursor}")
    refusal(of_other, 400, "invalid_cursor", field="cursor")


def test_limit_form_and_spelling_may_change_within_a_walk(shared: Api) -> None:
    cursor = page(shared, "limit=2&timeframe=1m")["next"]
    answer = shared.ask(f"/api/market/eurusd/history?limit=3&cursor={cursor}", headers={"Accept": CSV})
    assert [line[11:16] for line in answer.text.splitlines()[1:]] == ["12:02", "12:03", "12:04"]


def test_page_costs_a_query_for_every_thousand_candles_and_one_more(shared: Api) -> None:
    for limit, queries in ((500, 1), (1_000, 1), (1_001, 2)):
        with count_queries() as asked:
            page(shared, f"start={NOON_MS}&limit={limit}")
        assert sum("market_candle" in query for query in asked) == queries + 1, asked


# Forms.
def test_csv_is_what_the_export_writes(shared: Api) -> None:
    answer = ask(shared, "limit=2", CSV)
    assert answer.headers["Content-Type"].partition(";")[0] == CSV
    head = "time,open,high,low,close,volume\n"
    assert answer.text == (
        f"{head}2020-03-04T12:00:00Z,1.08012,1.08034,1.08,1.08021,0.0\n"
        "2020-03-04T12:01:00Z,1.08022,1.08044,1.0801,1.08031,0.25\n"
    )
    assert shared.ask("/api/market/EMPTY/history", headers={"Accept": CSV}).text == head


def test_arrow_has_times_of_utc_floats_and_what_it_is_of(shared: Api) -> None:
    answer = ask(shared, "limit=1100", ARROW)
    assert answer.headers["Content-Type"] == ARROW
    table = pyarrow.ipc.open_stream(answer.content).read_all()
    types = {field.name: str(field.type) for field in table.schema}
    floats = dict.fromkeys(("open", "high", "low", "close", "volume"), "double")
    assert types == {"time": "timestamp[ms, tz=UTC]", **floats}
    assert table.schema.metadata == {b"symbol": b"EURUSD", b"timeframe": b"1m"}
    candles = page(shared, "limit=1100")["ohlcv"]
    assert table.to_pylist() == [c | {"time": datetime.fromisoformat(c["time"])} for c in candles]
    empty = shared.ask("/api/market/EMPTY/history", headers={"Accept": ARROW})
    assert pyarrow.ipc.open_stream(empty.content).read_all().num_rows == 0


@pytest.mark.parametrize("accept", [CSV, ARROW])
@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_cursor_is_a_header_where_the_body_has_no_room(shared: Api, accept: str, method: str) -> None:
    query = "limit=1000&end=2020-03-30T00:00:00Z"
    cursor = page(shared, query)["next"]
    first, last = (
        shared.ask(f"{PATH}?{query}{more}", method=method, headers={"Accept": accept})
        for more in ("", f"&cursor={cursor}")
    )
    assert first.headers["X-Next-Cursor"] == cursor
    assert "X-Next-Cursor" not in last.headers
    assert "X-Next-Cursor" in first.headers["Access-Control-Expose-Headers"]


JSON = "application/json"


@pytest.mark.parametrize(
    ("accept", "expected"),
    [
        ("", JSON),
        ("*/*", JSON),
        ("application/*", JSON),
        ("text/*", CSV),
        (f"{CSV};q=0.5, application/json;q=0.4", CSV),
        (f"{CSV};q=0.5, application/json", JSON),
        (f"{CSV}, {ARROW}", CSV),
        (f"{ARROW};q=0.9,{CSV};q=0.8,*/*;q=0.1", ARROW),
        ("*/*, application/json;q=0", CSV),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", JSON),
        ("TEXT/CSV", CSV),
        (f"{CSV}; header=present", CSV),
    ],
)
def test_form_is_the_one_that_is_liked_best(shared: Api, accept: str, expected: str) -> None:
    answer = ask(shared, "limit=1", accept)
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"].partition(";")[0] == expected
    assert "Accept" in answer.headers["Vary"]


@pytest.mark.parametrize("accept", ["text/html", "application/xml, image/*", "*/*;q=0", f"{CSV};q=0"])
def test_other_forms_are_not_acceptable(shared: Api, accept: str) -> None:
    refused = ask(shared, "limit=1", accept)
    refusal(refused, 406, "not_acceptable", field="Accept", allowed=[JSON, CSV, ARROW])


def test_service_without_pyarrow_says_what_to_ask_for(shared: Api, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    refused = ask(shared, "limit=1", ARROW)
    message = refusal(refused, 406, "not_acceptable", field="Accept", allowed=[JSON, CSV])
    assert "the extra `archive`" in message
    other = ask(shared, "limit=1", f"{ARROW}, {CSV};q=0.5")
    assert other.headers["Content-Type"].startswith(CSV)


@pytest.mark.parametrize("accept", [JSON, CSV, ARROW])
def test_gzip_holds_the_same_page(shared: Api, accept: str) -> None:
    query = "limit=1100&end=2020-03-30T00:00:00Z"
    plain = ask(shared, query, accept, **{"Accept-Encoding": "identity"})
    headers = {"X-API-Key": shared.key, "Accept": accept, "Accept-Encoding": "gzip"}
    with shared.stream("GET", f"{PATH}?{query}", headers=headers) as packed:
        body = b"".join(packed.iter_raw())
    assert "Content-Encoding" not in plain.headers
    assert packed.headers["Content-Encoding"] == "gzip"
    assert "Accept-Encoding" in packed.headers["Vary"]
    assert gzip.decompress(body) == plain.content
    assert len(body) < len(plain.content) / 3


@pytest.mark.parametrize("coding", ["gzip;q=0", "br", "gzip;q=0.2, identity;q=0.9", "deflate, *;q=0"])
def test_gzip_is_only_for_those_who_want_it(shared: Api, coding: str) -> None:
    assert "Content-Encoding" not in ask(shared, "limit=1", **{"Accept-Encoding": coding}).headers


# Simulated and real, and what may not be handed on.
def put_kind(symbol: str, *, simulated: bool) -> None:
    instrument_id = catalogue.get_any(symbol).id
    LastQuote.objects.update_or_create(instrument_id=instrument_id, defaults={"simulated": simulated})


def history_of(shared: Api, symbol: str) -> list[int]:
    return times(shared.ask(f"/api/market/{symbol}/history").json())


def test_only_candles_of_the_present_kind_are_answered_and_no_walk_goes_on_in_the_other(shared: Api) -> None:
    make_instrument("KINDS")
    store("KINDS", minutes(3))
    store("KINDS", minutes(2, source="demo"))
    put_kind("KINDS", simulated=False)
    assert len(history_of(shared, "KINDS")) == 3
    cursor = shared.ask("/api/market/KINDS/history?limit=1").json()["next"]
    put_kind("KINDS", simulated=True)
    assert len(history_of(shared, "KINDS")) == 2
    refused = shared.ask(f"/api/market/KINDS/history?limit=1&cursor={cursor}")
    assert "simulated and real" in refusal(refused, 400, "invalid_cursor", field="cursor")


def store_hours(symbol: str) -> None:
    """The one before noon, and that of noon from when it was closed before its time."""
    hours = (to_ms("2026-11-18 11:00"), to_ms("2026-11-18 12:00"))
    store(symbol, [PriceBar(at_ms, 1.1, 1.1, 1.1, 1.1, 1.0, 1.1, 1.1, "push") for at_ms in hours], "1h")


def hours_of(shared: Api, symbol: str) -> list[str]:
    body = shared.ask(f"/api/market/{symbol}/history?timeframe=1h").json()
    return [candle["time"][11:13] for candle in body["ohlcv"]]


def test_hour_that_forms_again_is_closed_when_it_is_for_closed_only(clock: Traveller, shared: Api) -> None:
    make_instrument("AGAIN")
    store_hours("AGAIN")
    clock.shift(1)
    runtime.engine.accept(Tick("AGAIN", 1.1, 1.1, now_ms(), 1.0), now_ms())
    assert hours_of(shared, "AGAIN") == ["11"]
    clock.move_to("2026-11-18T13:00:02Z")
    runtime.engine.keep_time(now_ms())
    assert hours_of(shared, "AGAIN") == ["11", "12"]


def test_while_a_series_changes_only_what_the_clock_has_closed_is_answered(
    clock: Traveller, shared: Api
) -> None:
    make_instrument("CHANGES")
    store_hours("CHANGES")
    runtime.prices.history(catalogue.get("CHANGES")).simulated = True
    clock.move_to("2026-11-18T12:59:59.999Z")
    assert hours_of(shared, "CHANGES") == ["11"]
    clock.move_to("2026-11-18T13:00:00Z")
    assert hours_of(shared, "CHANGES") == ["11", "12"]


def test_candles_of_a_withheld_source_are_left_out(shared: Api) -> None:
    for symbol in ("MIXED", "HIDDEN"):
        make_instrument(symbol)
        store(symbol, minutes(5, source="oanda"))
    store("MIXED", minutes(1, first=5, source="kraken+oanda"))
    # So many that REST serves nothing older by its other paths.
    store("MIXED", minutes(600, first=6))
    assert len(history_of(shared, "MIXED")) == 606
    with withheld("oanda"):
        walked = history_of(shared, "MIXED")
        csv = shared.ask("/api/market/MIXED/history", headers={"Accept": CSV}).text
        refused = shared.ask("/api/market/HIDDEN/history")
    assert walked == [NOON_MS + number * MINUTE_MS for number in range(6, 606)]
    assert len(csv.splitlines()) == 601
    assert "terms" in refusal(refused, 404, "symbol_not_found", field="symbol")


def test_page_of_ours_reads_a_thousand_bars_and_no_more_however_often_it_asks(shared: Api) -> None:
    make_instrument("PAGED")
    store("PAGED", minutes(1_300))
    token = token_of(logged_in(make_account(make_user(), tier="roomy").user))

    def asked(query: str, key: str = token) -> Any:
        return shared.ask(f"/api/market/PAGED/history?{query}", key=key)

    whole, first = asked("limit=1000").json(), asked("limit=600").json()
    assert whole["count"] == 1_000
    message = refusal(asked("limit=1001"), 403, "not_allowed", field="limit", max=1_000)
    assert "settings panel" in message
    for limit, cursor in ((1, whole["next"]), (600, first["next"])):
        refusal(asked(f"limit={limit}&cursor={cursor}"), 403, "not_allowed", field="cursor")
    assert asked(f"limit=400&cursor={first['next']}").json()["count"] == 400
    # A key goes on from there.
    assert asked(f"limit=10000&cursor={whole['next']}", shared.key).json()["count"] == 300
