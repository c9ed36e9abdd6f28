"""GET /api/market/{symbol}/quote and GET /api/quotes, and how small prices are written everywhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

import pytest
from django.core.validators import RegexValidator
from time_machine import Traveller

from core.clock import now_ms
from core.contract.parameters import LONGEST_SYMBOL, SYMBOL
from instruments.models import Instrument, WithheldSource
from instruments.saving import pass_on_again, withhold
from market import runtime as market
from tests.client import Api
from tests.contract.answers import MILLISECONDS, refusal, to_ms
from tests.factories import make_calendar, make_instrument, make_signal, make_user, put_candles, put_quote
from tests.patience import wait_until

LONGEST = "L" * LONGEST_SYMBOL


@pytest.fixture(scope="module", autouse=True)
def instruments(shared: Api) -> None:
    for symbol in ("EURUSD", "GBPUSD", "QUIET"):
        make_instrument(symbol, source="push:desk")
    make_instrument("USDJPY", digits=3)
    make_instrument("BTCUSD", digits=0)
    make_instrument("PATIENT", stale_after_s=300)
    make_instrument("AAPL", calendar=make_calendar("afternoon", "Mon-Fri 13:00-14:00"))
    make_instrument("DORMANT", active=False)


@pytest.fixture(autouse=True)
def _quotes(clock: Traveller, instruments: None) -> None:
    market.prices.quotes.clear()
    for symbol in ("EURUSD", "GBPUSD", "USDJPY"):
        put_quote(symbol)


@pytest.mark.parametrize("symbol", ["EURUSD", "eurusd", "EurUsd"])
def test_quote_has_exactly_the_fields_of_the_specification(shared: Api, symbol: str) -> None:
    put_quote("EURUSD", bid=1.0841, ask=1.08424, at_ms=to_ms("2026-11-18 11:59:58.007"))
    response = shared.ask(f"/api/market/{symbol}/quote")
    assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")
    prices = {"bid": 1.0841, "ask": 1.08424, "spread": 0.00014}
    assert response.json() == {"symbol": "EURUSD", **prices, "timestamp": "2026-11-18T11:59:58.007Z"}


@pytest.mark.parametrize(
    ("symbol", "bid", "ask", "shown"),
    [
        pytest.param("EURUSD", 1.1, 1.1003, (1.1, 1.1003, 0.0003), id="no binary noise"),
        pytest.param("EURUSD", 1.0841, 1.0841, (1.0841, 1.0841, 0), id="no spread"),
        pytest.param("USDJPY", 151.20449, 151.21651, (151.204, 151.217, 0.013), id="rounded to three digits"),
        pytest.param("BTCUSD", 90001, 90013, (90001, 90013, 12), id="no digits"),
    ],
)
def test_prices_have_the_digits_of_the_instrument_and_spread_is_ask_minus_bid(
    shared: Api, symbol: str, bid: float, ask: float, shown: tuple[float, ...]
) -> None:
    put_quote(symbol, bid, ask)
    quote = shared.ask(f"/api/market/{symbol}/quote").json()
    assert (quote["bid"], quote["ask"], quote["spread"]) == shown


@pytest.mark.parametrize(
    ("symbol", "silent_s", "state"),
    [
        ("EURUSD", 0, "open"),
        ("EURUSD", -0.9, "open"),
        ("EURUSD", 60, "open"),
        ("EURUSD", 60.001, "stale"),
        ("PATIENT", 300, "open"),
        ("PATIENT", 300.001, "stale"),
        ("AAPL", 0, "closed"),
        ("AAPL", 3600, "stale"),
    ],
)
def test_headers_tell_the_age_of_the_tick_and_the_state_of_its_market(
    clock: Traveller, shared: Api, symbol: str, silent_s: float, state: str
) -> None:
    put_quote(symbol, at_ms=now_ms() - round(min(silent_s, 0) * 1000))
    clock.shift(max(silent_s, 0))
    headers = shared.ask(f"/api/market/{symbol}/quote").headers
    assert headers["X-Market-State"] == state
    assert headers["X-Quote-Age-Ms"] == str(round(max(silent_s, 0) * 1000))
    (item,) = shared.ask(f"/api/quotes?symbols={symbol}").json()["items"]
    assert (item["state"], str(item["age_ms"])) == (state, headers["X-Quote-Age-Ms"])


def test_closed_market_answers_its_last_quote_with_its_own_time(clock: Traveller, shared: Api) -> None:
    clock.move_to("2026-11-21T12:00:00Z")
    put_quote("AAPL", 187.1, 187.2, at_ms=to_ms("2026-11-20 13:59:59.5"))
    response = shared.ask("/api/market/AAPL/quote")
    told = {"state": response.headers["X-Market-State"], "age_ms": int(response.headers["X-Quote-Age-Ms"])}
    assert told == {"state": "closed", "age_ms": 22 * 3_600_000 + 500}
    assert (response.json()["bid"], response.json()["timestamp"]) == (187.1, "2026-11-20T13:59:59.500Z")
    assert shared.ask("/api/quotes?symbols=AAPL").json()["items"] == [response.json() | told]


@pytest.mark.parametrize(
    ("path", "meant"),
    [
        ("/api/market/EURUSE/quote", "EURUSD"),
        ("/api/market/eurud", "EURUSD"),
        ("/api/market/USDJPYY/quote", "USDJPY"),
        ("/api/market/EURUSE/history", "EURUSD"),
        ("/api/signals?symbol=EURUD", "EURUSD"),
        *((f"/api/market/{symbol}", None) for symbol in ("QQQQQQ/quote", "DORMANT/quote", "DORMAN/quote")),
        *(
            (path, None)
            for path in ("/api/market/DORMANT", "/api/analysis/DORMANT", "/api/orderflow/DORMANT")
        ),
    ],
)
def test_unknown_and_inactive_symbols_are_404_and_suggest_a_close_one(
    shared: Api, path: str, meant: str | None
) -> None:
    put_quote("DORMANT")
    message = refusal(shared.ask(path), 404, "symbol_not_found", field="symbol")
    assert meant in message if meant else "mean" not in message


# Many quotes in one answer.
def told(api: Api, query: str) -> tuple[list[str], dict[str, str]]:
    """The symbols that have a quote, and the code of each other."""
    body = api.ask(f"/api/quotes{query}").json()
    assert list(body) == ["items", "count", "rejected"]
    assert body["count"] == len(body["items"])
    return [item["symbol"] for item in body["items"]], {
        each["symbol"]: each["code"] for each in body["rejected"]
    }


def test_item_has_exactly_the_fields_of_the_contract_and_is_the_quote_of_the_instrument(shared: Api) -> None:
    response = shared.ask("/api/quotes?symbols=USDJPY")
    assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")
    (item,) = response.json()["items"]
    assert list(item) == ["symbol", "bid", "ask", "spread", "timestamp", "state", "age_ms"]
    assert MILLISECONDS.fullmatch(item["timestamp"])
    assert item.items() >= shared.ask("/api/market/USDJPY/quote").json().items()


UNKNOWN = "symbol_not_found"
NO_QUOTE = "quote_unavailable"


@pytest.mark.parametrize(
    ("query", "items", "rejected"),
    [
        pytest.param("?symbols=USDJPY,EURUSD,GBPUSD", ["USDJPY", "EURUSD", "GBPUSD"], {}, id="as asked"),
        pytest.param(
            "?symbols=eurusd,GBPUSD,EurUsd,GBPUSD,nope,NOPE",
            ["EURUSD", "GBPUSD"],
            {"nope": UNKNOWN},
            id="case does not matter and duplicates come once",
        ),
        pytest.param(
            f"?symbols=NOPE,EURUSD,QUIET,DORMANT,a.B-c_9,{LONGEST}",
            ["EURUSD"],
            {"NOPE": UNKNOWN, "QUIET": NO_QUOTE, "DORMANT": UNKNOWN, "a.B-c_9": UNKNOWN, LONGEST: UNKNOWN},
            id="each that has none is told",
        ),
        pytest.param(
            "?symbols=%20EURUSD,%20NOPE%20,+GBPUSD+,EURUSD",
            ["EURUSD", "GBPUSD"],
            {"NOPE": UNKNOWN},
            id="spaces do not matter",
        ),
        pytest.param(
            "",
            ["EURUSD", "GBPUSD", "USDJPY"],
            {"AAPL": NO_QUOTE, "BTCUSD": NO_QUOTE, "PATIENT": NO_QUOTE, "QUIET": NO_QUOTE},
            id="all that are offered",
        ),
    ],
)
def test_quotes_of_a_list(shared: Api, query: str, items: list[str], rejected: dict[str, str]) -> None:
    assert told(shared, query) == (items, rejected)


MALFORMED = {
    "semicolon": "EURUSD;GBPUSD",
    "space": "EURUSD%20GBPUSD",
    "slash": "EUR/USD",
    "first a dash": "-EURUSD",
    "tab": "EURUSD%09",
    "newline": "EURUSD%0A",
    "NUL": "EURUSD%00",
    "quote": "a%22b",
    "emoji": "%F0%9F%92%B6",
    "long s for an s": "u%C5%BFdjpy",
    "21 letters": "A" * 21,
    "7000 letters": "A" * 7_000,
    "only a space": "EURUSD,%20",
    "nothing": "",
    "nothing first": ",EURUSD",
    "nothing between": "EURUSD,,GBPUSD",
}


@pytest.mark.parametrize("value", MALFORMED.values(), ids=MALFORMED)
def test_name_that_no_instrument_can_have_is_refused(shared: Api, value: str) -> None:
    response = shared.ask(f"/api/quotes?symbols=GBPUSD,{value}")
    message = refusal(response, 400, "invalid_parameter", field="symbols")
    assert "separated by single commas" in message
    assert len(response.content) < 500


def test_what_can_be_asked_for_is_what_an_instrument_can_be_called() -> None:
    field = Instrument._meta.get_field("symbol")
    (pattern,) = (
        re.compile(each.regex).pattern for each in field.validators if isinstance(each, RegexValidator)
    )
    assert field.max_length == LONGEST_SYMBOL
    assert pattern.strip("^$").replace("A-Z", "A-Za-z").replace("*", f"{{0,{LONGEST_SYMBOL - 1}}}") == SYMBOL


def test_200_are_answered_and_201_refused(shared: Api) -> None:
    many = ",".join(f"S{number}" for number in range(199))
    assert len(told(shared, f"?symbols={many},EURUSD,eurusd")[1]) == 199
    response = shared.ask(f"/api/quotes?symbols={many},EURUSD,GBPUSD")
    refusal(response, 400, "parameter_out_of_range", field="symbols", max=200)


def test_more_than_200_on_offer_have_to_be_named(shared: Api) -> None:
    offered = Instrument.objects.filter(active=True).count()
    added = [make_instrument(f"MANY{number}").pk for number in range(202 - offered)]
    try:
        message = refusal(shared.ask("/api/quotes"), 400, "invalid_parameter", field="symbols", max=200)
        assert "202" in message
        assert told(shared, "?symbols=EURUSD") == (["EURUSD"], {})
        Instrument.objects.filter(pk__in=added[:2]).delete()
        make_instrument("LAST", active=False)
        assert shared.ask("/api/quotes").json()["count"] == 3
    finally:
        Instrument.objects.filter(pk__in=added).delete()
        make_instrument("REFRESHED", active=False)


@pytest.fixture
def withheld() -> Iterator[WithheldSource]:
    yield WithheldSource(name="push", why="Its terms forbid it.")
    pass_on_again(WithheldSource.objects.all(), by="test")


def test_what_may_not_be_handed_on_is_not_found(shared: Api, withheld: WithheldSource) -> None:
    withhold(withheld, by="test")
    wait_until(lambda: told(shared, "?symbols=EURUSD") == ([], {"EURUSD": UNKNOWN}))
    assert "EURUSD" not in shared.ask("/api/quotes").text
    flow = refusal(shared.ask("/api/orderflow/EURUSD"), 404, "symbol_not_found", field="symbol")
    assert "terms of its source" in flow


# A token of a hundred-millionth of a dollar: every number in full, in every answer.
EXPONENT = re.compile(r"[0-9][eE][-+0-9]")
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')


@pytest.fixture(scope="module")
def pepe(shared: Api) -> None:
    small = make_instrument("PEPEUSD", type="crypto", digits=8, pip_size=Decimal("0.00000001"))
    terms = {"entry": "0.00000934", "stop_loss": "0.00000900", "take_profit": "0.00000990"}
    make_signal(small, make_user("kleio"), **{name: Decimal(value) for name, value in terms.items()})


@pytest.mark.usefixtures("pepe")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/symbols", '"pip_size":0.00000001'),
        ("/api/market/PEPEUSD/quote", '"bid":0.00000931,"ask":0.00000934,"spread":0.00000003'),
        ("/api/market/PEPEUSD?timeframe=1m", '"low":0.00003'),
        ("/api/signals?symbol=PEPEUSD", '"entry":0.00000934,"stop_loss":0.000009,"take_profit":0.0000099'),
        *((path, "") for path in ("/openapi.json", "/asyncapi.json", "/status.json")),
    ],
)
def test_small_numbers_are_written_in_full(shared: Api, path: str, expected: str) -> None:
    put_quote("PEPEUSD", 0.00000931, 0.00000934)
    put_candles("PEPEUSD", "1m", [now_ms() // 60_000 * 60_000 - 60_000], price=0.00003)
    response = shared.ask(path)
    assert response.status_code == 200
    assert expected in response.text
    assert not EXPONENT.search(TEXT.sub("", response.text))
