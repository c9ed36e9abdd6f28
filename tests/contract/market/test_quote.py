from __future__ import annotations

import pytest
from time_machine import Traveller

from core.clock import now_ms
from tests.client import Api
from tests.contract.answers import MILLISECONDS, refusal, to_ms
from tests.factories import make_calendar, make_instrument, put_quote


@pytest.fixture(scope="module", autouse=True)
def instruments(shared: Api) -> None:
    make_instrument("EURUSD")
    make_instrument("USDJPY", digits=3)
    make_instrument("BTCUSD", digits=0)
    make_instrument("EURGBP")
    make_instrument("DORMANT", active=False)
    make_instrument("PATIENT", stale_after_s=300)
    make_instrument("AAPL", calendar=make_calendar("afternoon", "Mon-Fri 13:00-14:00"))


def test_quote_has_exactly_the_fields_of_the_specification(shared: Api) -> None:
    put_quote("EURUSD", bid=1.0841, ask=1.08424)

    response = shared.ask("/api/market/EURUSD/quote")

    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    body = response.json()
    assert set(body) == {"symbol", "bid", "ask", "spread", "timestamp"}
    assert (body["symbol"], body["bid"], body["ask"], body["spread"]) == ("EURUSD", 1.0841, 1.08424, 0.00014)
    assert MILLISECONDS.fullmatch(body["timestamp"])


@pytest.mark.parametrize("symbol", ["eurusd", "EurUsd", "EURUSD"])
def test_case_of_the_symbol_does_not_matter(shared: Api, symbol: str) -> None:
    put_quote("EURUSD")

    assert shared.ask(f"/api/market/{symbol}/quote").json()["symbol"] == "EURUSD"


def test_timestamp_is_the_ticks_own_time_to_the_millisecond(shared: Api) -> None:
    put_quote("EURUSD", at_ms=to_ms("2026-11-18 11:59:58.007"))

    assert shared.ask("/api/market/EURUSD/quote").json()["timestamp"] == "2026-11-18T11:59:58.007Z"


@pytest.mark.parametrize(
    ("symbol", "bid", "ask", "spread"),
    [
        pytest.param("EURUSD", 1.1, 1.1003, 0.0003, id="no binary noise"),
        pytest.param("EURUSD", 1.0841, 1.0841, 0, id="no spread"),
        pytest.param("USDJPY", 151.204, 151.217, 0.013, id="three digits"),
        pytest.param("BTCUSD", 90001, 90013, 12, id="no digits"),
    ],
)
def test_spread_is_ask_minus_bid_in_price_units(
    shared: Api, symbol: str, bid: float, ask: float, spread: float
) -> None:
    put_quote(symbol, bid, ask)

    assert shared.ask(f"/api/market/{symbol}/quote").json()["spread"] == spread


def test_prices_are_rounded_to_the_digits_of_the_instrument(shared: Api) -> None:
    put_quote("USDJPY", 151.20449, 151.21651)

    body = shared.ask("/api/market/USDJPY/quote").json()

    assert (body["bid"], body["ask"], body["spread"]) == (151.204, 151.217, 0.013)


def test_age_is_that_of_the_tick(clock: Traveller, shared: Api) -> None:
    put_quote("EURUSD")
    clock.shift(1.25)

    assert shared.ask("/api/market/EURUSD/quote").headers["X-Quote-Age-Ms"] == "1250"


def test_tick_of_a_clock_ahead_of_ours_has_no_negative_age(clock: Traveller, shared: Api) -> None:
    put_quote("EURUSD", at_ms=now_ms() + 900)

    assert shared.ask("/api/market/EURUSD/quote").headers["X-Quote-Age-Ms"] == "0"


@pytest.mark.parametrize(
    ("symbol", "silent_s", "state"),
    [
        ("EURUSD", 0, "open"),
        ("EURUSD", 60, "open"),
        ("EURUSD", 60.001, "stale"),
        ("PATIENT", 300, "open"),
        ("PATIENT", 300.001, "stale"),
        ("AAPL", 0, "closed"),
        ("AAPL", 3600, "stale"),
    ],
)
def test_market_state(clock: Traveller, shared: Api, symbol: str, silent_s: float, state: str) -> None:
    put_quote(symbol)
    clock.shift(silent_s)

    assert shared.ask(f"/api/market/{symbol}/quote").headers["X-Market-State"] == state


def test_closed_market_answers_its_last_quote_with_its_own_time(clock: Traveller, shared: Api) -> None:
    clock.move_to("2026-11-21T12:00:00Z")
    put_quote("AAPL", 187.1, 187.2, at_ms=to_ms("2026-11-20 13:59:59.5"))

    response = shared.ask("/api/market/AAPL/quote")

    assert (response.json()["bid"], response.json()["timestamp"]) == (187.1, "2026-11-20T13:59:59.500Z")
    assert response.headers["X-Market-State"] == "closed"
    assert response.headers["X-Quote-Age-Ms"] == str(22 * 3_600_000 + 500)


def test_never_quoted_is_503_with_a_time_to_try_again(shared: Api) -> None:
    response = shared.ask("/api/market/EURGBP/quote")

    refusal(response, 503, "quote_unavailable")
    assert int(response.headers["Retry-After"]) >= 1
    assert int(response.headers["X-RateLimit-Remaining"]) < 100_000


@pytest.mark.parametrize("path", ["/api/market/{}/quote", "/api/market/{}"])
def test_unknown_symbol_is_404(shared: Api, path: str) -> None:
    refusal(shared.ask(path.format("NOSUCH")), 404, "symbol_not_found", field="symbol")


@pytest.mark.parametrize(
    ("typo", "meant"), [("EURUSE", "EURUSD"), ("eurud", "EURUSD"), ("USDJPYY", "USDJPY")]
)
def test_unknown_symbol_suggests_a_close_one(shared: Api, typo: str, meant: str) -> None:
    message = refusal(shared.ask(f"/api/market/{typo}/quote"), 404, "symbol_not_found", field="symbol")

    assert meant in message


def test_far_off_symbol_suggests_none(shared: Api) -> None:
    message = refusal(shared.ask("/api/market/QQQQQQ/quote"), 404, "symbol_not_found", field="symbol")

    assert not any(symbol in message for symbol in ("EURUSD", "USDJPY", "BTCUSD", "EURGBP", "AAPL"))


def test_inactive_instrument_is_unknown_and_never_suggested(shared: Api) -> None:
    put_quote("DORMANT")

    for path in ("/api/market/DORMANT/quote", "/api/market/DORMAN/quote", "/api/market/DORMANT"):
        message = refusal(shared.ask(path), 404, "symbol_not_found", field="symbol")
        assert "mean DORMANT" not in message
