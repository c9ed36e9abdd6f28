"""GET /api/quotes, as the contract's row on quotes has it."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from django.core.validators import RegexValidator
from time_machine import Traveller

from core.contract.parameters import LONGEST_SYMBOL, SYMBOL
from instruments.models import Instrument, WithheldSource
from instruments.saving import hand_on_again, withhold
from market import runtime as market
from tests.client import Api
from tests.contract.answers import MILLISECONDS, refusal, to_ms
from tests.factories import make_account, make_calendar, make_instrument, make_key, make_tier, put_quote
from tests.patience import wait_until

LONGEST = "L" * LONGEST_SYMBOL


@pytest.fixture(scope="module", autouse=True)
def instruments(shared: Api) -> None:
    for symbol in ("EURUSD", "GBPUSD", "QUIET"):
        make_instrument(symbol, source="push:desk")
    make_instrument("USDJPY", digits=3)
    make_instrument("AAPL", calendar=make_calendar("afternoon", "Mon-Fri 13:00-14:00"))
    make_instrument("DORMANT", active=False)


@pytest.fixture(autouse=True)
def _quotes(clock: Traveller, instruments: None) -> None:
    market.prices.quotes.clear()
    for symbol in ("EURUSD", "GBPUSD", "USDJPY"):
        put_quote(symbol)


def symbols(api: Api, query: str) -> list[str]:
    return [item["symbol"] for item in api.ask(f"/api/quotes{query}").json()["items"]]


def test_answer_has_exactly_the_fields_of_the_contract(shared: Api) -> None:
    response = shared.ask("/api/quotes?symbols=EURUSD,NOPE")

    assert response.status_code == 200
    assert response.headers["Content-Type"] == "application/json"
    body = response.json()
    assert list(body) == ["items", "count", "rejected"]
    (item,) = body["items"]
    assert list(item) == ["symbol", "bid", "ask", "spread", "timestamp", "state", "age_ms"]
    assert (body["count"], body["rejected"]) == (1, [{"symbol": "NOPE", "code": "symbol_not_found"}])
    assert MILLISECONDS.fullmatch(item["timestamp"])


def test_item_is_the_quote_of_the_instrument(shared: Api) -> None:
    put_quote("USDJPY", 151.20449, 151.21651)

    (item,) = shared.ask("/api/quotes?symbols=USDJPY").json()["items"]

    quote = shared.ask("/api/market/USDJPY/quote")
    assert item == {
        **quote.json(),
        "state": quote.headers["X-Market-State"],
        "age_ms": int(quote.headers["X-Quote-Age-Ms"]),
    }


def test_they_come_in_the_order_asked(shared: Api) -> None:
    assert symbols(shared, "?symbols=USDJPY,EURUSD,GBPUSD") == ["USDJPY", "EURUSD", "GBPUSD"]


def test_case_does_not_matter_and_duplicates_come_once(shared: Api) -> None:
    body = shared.ask("/api/quotes?symbols=eurusd,GBPUSD,EurUsd,GBPUSD,nope,NOPE").json()

    assert [item["symbol"] for item in body["items"]] == ["EURUSD", "GBPUSD"]
    assert body["count"] == 2
    assert body["rejected"] == [{"symbol": "nope", "code": "symbol_not_found"}]


def test_each_that_has_no_quote_is_told_and_the_others_are_answered(shared: Api) -> None:
    body = shared.ask(f"/api/quotes?symbols=NOPE,EURUSD,QUIET,DORMANT,a.B-c_9,{LONGEST}").json()

    assert [item["symbol"] for item in body["items"]] == ["EURUSD"]
    assert [(each["symbol"], each["code"]) for each in body["rejected"]] == [
        ("NOPE", "symbol_not_found"),
        ("QUIET", "quote_unavailable"),
        ("DORMANT", "symbol_not_found"),
        ("a.B-c_9", "symbol_not_found"),
        (LONGEST, "symbol_not_found"),
    ]


def test_spaces_around_a_name_do_not_matter(shared: Api) -> None:
    body = shared.ask("/api/quotes?symbols=%20EURUSD,%20NOPE%20,+GBPUSD+,EURUSD").json()

    assert [item["symbol"] for item in body["items"]] == ["EURUSD", "GBPUSD"]
    assert body["rejected"] == [{"symbol": "NOPE", "code": "symbol_not_found"}]


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


def test_without_symbols_all_that_are_offered_come_by_symbol(shared: Api) -> None:
    body = shared.ask("/api/quotes").json()

    assert [item["symbol"] for item in body["items"]] == ["EURUSD", "GBPUSD", "USDJPY"]
    assert [(each["symbol"], each["code"]) for each in body["rejected"]] == [
        ("AAPL", "quote_unavailable"),
        ("QUIET", "quote_unavailable"),
    ]


def test_old_quote_keeps_its_time_and_says_how_old_it_is(clock: Traveller, shared: Api) -> None:
    put_quote("AAPL", 187.1, 187.2, at_ms=to_ms("2026-11-17 13:59:59.5"))
    clock.shift(61)

    items = shared.ask("/api/quotes?symbols=AAPL,EURUSD").json()["items"]

    closed_s = 22 * 3_600 + 61
    assert [(item["state"], item["age_ms"]) for item in items] == [
        ("closed", closed_s * 1000 + 500),
        ("stale", 61_000),
    ]
    assert items[0]["timestamp"] == "2026-11-17T13:59:59.500Z"


def test_tick_of_a_clock_ahead_of_ours_has_no_negative_age(shared: Api) -> None:
    put_quote("EURUSD", at_ms=to_ms("2026-11-18 12:00:00.9"))

    assert shared.ask("/api/quotes?symbols=EURUSD").json()["items"][0]["age_ms"] == 0


@pytest.mark.parametrize("value", ["", ",", "EURUSD,", ",EURUSD", "EURUSD,,GBPUSD"])
def test_empty_place_in_the_list_is_refused(shared: Api, value: str) -> None:
    refusal(shared.ask(f"/api/quotes?symbols={value}"), 400, "invalid_parameter", field="symbols")


def test_list_given_twice_is_refused(shared: Api) -> None:
    response = shared.ask("/api/quotes?symbols=EURUSD&symbols=GBPUSD")

    refusal(response, 400, "invalid_parameter", field="symbols")


def test_200_are_answered_and_201_refused(shared: Api) -> None:
    many = ",".join(f"S{number}" for number in range(199))

    assert len(shared.ask(f"/api/quotes?symbols={many},EURUSD,eurusd").json()["rejected"]) == 199
    response = shared.ask(f"/api/quotes?symbols={many},EURUSD,GBPUSD")
    refusal(response, 400, "parameter_out_of_range", field="symbols", max=200)


def test_one_request_costs_one_however_many_it_names(shared: Api) -> None:
    key = make_key(make_account(tier=make_tier("quotes", requests_per_minute=3)))

    left = [
        int(shared.ask(f"/api/quotes{query}", key=key).headers["X-RateLimit-Remaining"])
        for query in ("", "?symbols=EURUSD,GBPUSD,USDJPY", "?symbols=")
    ]

    assert left == [2, 1, 0]
    refusal(shared.ask("/api/quotes?symbols=", key=key), 429, "rate_limit_exceeded")
    refusal(shared.ask("/api/quotes?symbols=", key=None), 401, "missing_api_key")


def test_more_than_200_on_offer_have_to_be_named(shared: Api) -> None:
    added = [make_instrument(f"MANY{number}").pk for number in range(197)]
    try:
        message = refusal(shared.ask("/api/quotes"), 400, "invalid_parameter", field="symbols", max=200)
        assert "202" in message
        assert symbols(shared, "?symbols=EURUSD") == ["EURUSD"]
        Instrument.objects.filter(pk__in=added[:2]).delete()
        make_instrument("LAST", active=False)
        assert shared.ask("/api/quotes").json()["count"] == 3
    finally:
        Instrument.objects.filter(pk__in=added).delete()
        make_instrument("REFRESHED", active=False)


@pytest.fixture
def withheld() -> Iterator[WithheldSource]:
    yield WithheldSource(name="push", why="Its terms forbid it.")
    hand_on_again(WithheldSource.objects.all(), by="test")


def test_what_may_not_be_handed_on_is_not_found(shared: Api, withheld: WithheldSource) -> None:
    withhold(withheld, by="test")

    def rejected() -> list[tuple[str, str]]:
        body = shared.ask("/api/quotes?symbols=EURUSD").json()
        return [(each["symbol"], each["code"]) for each in body["rejected"]]

    wait_until(lambda: rejected() == [("EURUSD", "symbol_not_found")])
    assert "EURUSD" not in shared.ask("/api/quotes").text
