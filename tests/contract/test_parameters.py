"""Hostile values of every parameter: refused with the one body, on both databases."""

from __future__ import annotations

from typing import Any

import pytest

from instruments.views import EXPANSIONS
from tests.client import Api
from tests.factories import make_instrument, make_signal, put_quote

from .answers import PATHS, refusal
from .published import make_shown

TIMEFRAMES = ["1m", "5m", "15m", "1h", "4h", "1d"]
# The path, the parameter and what its refusal tells beside the field.
COUNTS: list[tuple[str, str, dict[str, Any]]] = [
    ("/api/market/EURUSD", "bars", {"max": 500}),
    ("/api/signals", "limit", {"max": 500}),
    ("/api/news", "limit", {"max": 500}),
    ("/api/orderflow/EURUSD", "limit", {"max": 500}),
]
WORDS: list[tuple[str, str, dict[str, Any]]] = [
    ("/api/market/EURUSD", "timeframe", {"allowed": TIMEFRAMES}),
    ("/api/market/EURUSD", "closed_only", {"allowed": ["true", "false"]}),
    ("/api/signals", "status", {"allowed": ["active", "closed", "all"]}),
    ("/api/news", "category", {"allowed": ["forex", "gold", "crypto", "macro"]}),
    ("/api/news", "expand", {"allowed": ["id", "url", "source", "summary", "symbols", "model"]}),
    ("/api/symbols", "expand", {"allowed": [*EXPANSIONS]}),
]
# As they stand in the query string.
NO_NUMBERS = {
    "negative": "-1",
    "exponent": "1e2",
    "nan": "nan",
    "inf": "inf",
    "hexadecimal": "0x10",
    "underscore": "1_0",
    "Arabic digit": "%D9%A3",
    "full-width digit": "%EF%BC%95",
    "superscript": "%C2%B2",
    "plus sign": "%2B5",
    "plus as a space": "+5",
    "spaces": "%207%20",
    "tab": "%097",
    "NUL": "5%00",
    "newline": "5%0A",
    "empty": "",
    "decimal": "1.0",
    "comma": "1,0",
    "list": "[5]",
    "true": "true",
    "not UTF-8": "%FF",
    "half a code": "5%",
    "no code": "%ZZ",
    "quote": "5'",
    "injection": "5;DROP%20TABLE%20users",
}
OUT_OF_RANGE = {
    "nought": "0",
    "noughts": "000",
    "501": "501",
    "2^31": "2147483648",
    "2^63": "9223372036854775808",
    "2^64": "18446744073709551616",
    "400 digits": "9" * 400,
    "2000 digits": "1" * 2000,
}
NO_WORDS = {
    **{kind: value for kind, value in NO_NUMBERS.items() if kind != "true"},
    **OUT_OF_RANGE,
    "text": "abc",
    "2000 letters": "a" * 2000,
    "upper case": "ACTIVE",
    "homoglyph": "%D0%B0ctive",
    "template": "%7B%7B7*7%7D%7D",
    "script": "%3Cscript%3E",
}


def named(table: list[tuple[str, str, dict[str, Any]]]) -> list[Any]:
    return [pytest.param(*row, id=f"{row[0].split('/')[2]} {row[1]}") for row in table]


@pytest.fixture(scope="module", autouse=True)
def rows(shared: Api) -> None:
    make_shown(make_instrument("EURUSD"))
    put_quote("EURUSD")
    make_signal()


@pytest.mark.parametrize("value", NO_NUMBERS.values(), ids=NO_NUMBERS)
@pytest.mark.parametrize(("path", "name", "told"), named(COUNTS))
def test_what_is_no_whole_number_is_refused(
    shared: Api, path: str, name: str, told: dict[str, Any], value: str
) -> None:
    refusal(shared.ask(f"{path}?{name}={value}"), 400, "invalid_parameter", field=name, **told)


@pytest.mark.parametrize("value", OUT_OF_RANGE.values(), ids=OUT_OF_RANGE)
@pytest.mark.parametrize(("path", "name", "told"), named(COUNTS))
def test_number_out_of_range_is_refused_and_never_clamped(
    shared: Api, path: str, name: str, told: dict[str, Any], value: str
) -> None:
    refusal(shared.ask(f"{path}?{name}={value}"), 400, "parameter_out_of_range", field=name, **told)


@pytest.mark.parametrize("value", NO_WORDS.values(), ids=NO_WORDS)
@pytest.mark.parametrize(("path", "name", "told"), named(WORDS))
def test_what_is_none_of_the_allowed_words_is_refused(
    shared: Api, path: str, name: str, told: dict[str, Any], value: str
) -> None:
    code = "invalid_timeframe" if name == "timeframe" else "invalid_parameter"

    message = refusal(shared.ask(f"{path}?{name}={value}"), 400, code, field=name, **told)

    assert all(word in message for word in told["allowed"])


@pytest.mark.parametrize("value", NO_WORDS.values(), ids=NO_WORDS)
def test_what_is_no_symbol_is_not_found(shared: Api, value: str) -> None:
    refusal(shared.ask(f"/api/signals?symbol={value}"), 404, "symbol_not_found", field="symbol")


@pytest.mark.parametrize(
    ("path", "name", "values"),
    [
        ("/api/market/EURUSD", "bars", "5 5"),
        ("/api/market/EURUSD", "bars", "5 "),
        ("/api/market/EURUSD", "timeframe", "1h 1h"),
        ("/api/market/EURUSD", "closed_only", "true false"),
        ("/api/signals", "limit", "5 6"),
        ("/api/signals", "status", "active active"),
        ("/api/signals", "symbol", "EURUSD EURUSD"),
        ("/api/news", "limit", "5 5"),
        ("/api/news", "category", "gold forex"),
        ("/api/news", "expand", "id url"),
        ("/api/symbols", "expand", "digits hours"),
        ("/api/quotes", "symbols", "EURUSD EURUSD"),
        ("/api/orderflow/EURUSD", "start", "1 1"),
        ("/api/orderflow/EURUSD", "end", "1 2"),
    ],
)
def test_parameter_given_twice_is_refused(shared: Api, path: str, name: str, values: str) -> None:
    query = "&".join(f"{name}={value}" for value in values.split(" "))

    refusal(shared.ask(f"{path}?{query}"), 400, "invalid_parameter", field=name)


def test_the_same_name_coded_differently_is_given_twice(shared: Api) -> None:
    refusal(shared.ask("/api/news?limit=5&l%69mit=6"), 400, "invalid_parameter", field="limit")


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "query",
    [
        "nothing=1",
        "nothing=1&nothing=2",
        "page=2&offset=-1",
        "LIMIT=0&Bars=0",
        "limit[]=0",
        "%00=%00",
        "%FF=%FF",
        "&&&",
        "=",
        "nothing=" + "a" * 2000,
        "a" * 2000,
    ],
    ids=lambda query: query[:24],
)
def test_unknown_names_are_ignored(shared: Api, path: str, query: str) -> None:
    assert shared.ask(f"{path}?{query}").status_code == 200


@pytest.mark.parametrize("path", ["/api/market/EURUSD/quote", "/api/session", "/api/limits"])
@pytest.mark.parametrize("query", ["bars=0", "limit=0", "timeframe=2h", "expand=nothing", "symbol=NOSUCH"])
def test_names_that_only_other_paths_know_are_ignored(shared: Api, path: str, query: str) -> None:
    assert shared.ask(f"{path}?{query}").status_code == 200


@pytest.mark.parametrize(
    ("path", "same"),
    [
        ("/api/signals?limit=%35", "/api/signals?limit=5"),
        ("/api/signals?%6Cimit=5", "/api/signals?limit=5"),
        ("/api/signals?status=%61ll", "/api/signals?status=all"),
        ("/api/signals?symbol=%65urusd", "/api/signals?symbol=EURUSD"),
        ("/api/news?category=gold%2Cforex", "/api/news?category=gold,forex"),
        ("/api/market/EURUSD?timeframe=%31h&bars=%31%30", "/api/market/EURUSD?timeframe=1h&bars=10"),
        ("/api/signals?limit=005", "/api/signals?limit=5"),
        (
            "/api/orderflow/EURUSD?end=2026%2D11-18T10:00:00%5A",
            "/api/orderflow/EURUSD?end=2026-11-18T10:00:00Z",
        ),
    ],
)
def test_percent_encoding_changes_nothing(shared: Api, path: str, same: str) -> None:
    coded, plain = shared.ask(path), shared.ask(same)

    assert (coded.status_code, plain.status_code) == (200, 200)
    assert coded.content == plain.content
