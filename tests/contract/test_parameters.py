"""Hostile values of every parameter: refused with the one body, on both databases."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from market import runtime
from tests.client import Api
from tests.factories import make_instrument, make_news, make_signal, put_quote
from tests.market.kept_ticks import batch, keep

from .answers import PATHS, refusal
from .published import make_shown

pytestmark = pytest.mark.services

TIMEFRAMES = ["1m", "5m", "15m", "1h", "4h", "1d"]
# The path, the parameter and what its refusal tells beside the field.
COUNTS: list[tuple[str, str, dict[str, Any]]] = [
    ("/api/market/EURUSD", "bars", {"max": 500}),
    ("/api/market/EURUSD/history", "limit", {"max": 10_000}),
    ("/api/market/EURUSD/ticks", "limit", {"max": 10_000}),
    ("/api/signals", "limit", {"max": 500}),
    ("/api/signals/ledger", "limit", {"max": 500}),
    ("/api/news", "limit", {"max": 500}),
    ("/api/orderflow/EURUSD", "limit", {"max": 500}),
    ("/api/archive", "limit", {"max": 500}),
]
WORDS: list[tuple[str, str, dict[str, Any]]] = [
    ("/api/market/EURUSD", "timeframe", {"allowed": TIMEFRAMES}),
    ("/api/market/EURUSD", "closed_only", {"allowed": ["true", "false"]}),
    ("/api/market/EURUSD/history", "timeframe", {"allowed": TIMEFRAMES}),
    ("/api/signals", "status", {"allowed": ["active", "closed", "all"]}),
    ("/api/news", "category", {"allowed": ["forex", "gold", "crypto", "macro"]}),
    ("/api/news", "expand", {"allowed": ["id", "url", "source", "summary", "symbols", "model"]}),
    ("/api/symbols", "expand", {"allowed": ["digits", "hours", "state", "order_flow_source", "volume_kind"]}),
    ("/api/market/EURUSD", "expand", {"allowed": ["basis"]}),
    ("/api/market/EURUSD/history", "expand", {"allowed": ["basis"]}),
    ("/api/analysis/EURUSD", "model", {"allowed": ["tickwire-analyst-1"]}),
    ("/api/archive", "kind", {"allowed": ["candles", "manifest", "ticks"]}),
]
# As they stand in the query string.
NO_NUMBERS = (
    # The digits are those of Arabic, of full width, and raised.
    *("-1", "1e2", "nan", "inf", "0x10", "1_0", "%D9%A3", "%EF%BC%95", "%C2%B2", "%2B5", "+5", "%207%20"),
    *("%097", "5%00", "5%0A", "", "1.0", "1,0", "[5]", "true", "%FF", "5%", "%ZZ", "5'"),
    "5;DROP%20TABLE%20users",
)
OUT_OF_RANGE = (
    *("0", "000", "10001", "2147483648", "9223372036854775808", "18446744073709551616", "9" * 400),
    "1" * 2000,
)
NO_WORDS = (
    *(value for value in NO_NUMBERS + OUT_OF_RANGE if value != "true"),
    *("abc", "a" * 2000, "ACTIVE", "1H", "Gold", "%D0%B0ctive", "%7B%7B7*7%7D%7D", "%3Cscript%3E", ","),
    *("active,closed", "1h,4h", "gold,", "gold,%20crypto", "gold;crypto", "id,", "TICKWIRE-ANALYST-1"),
)
RANGES = (
    *("/api/market/EURUSD/history", "/api/orderflow/EURUSD", "/api/signals?status=all", "/api/news"),
    "/api/archive",
)
NO_TIMES = {
    **dict.fromkeys(
        ("", "soon", "2026-11-20T14:00:00", "2026-02-30", "1.5", "1e3", "-1"), "invalid_parameter"
    ),
    **dict.fromkeys(("1969-12-31T00:00:00Z", "9" * 20, "9" * 30), "parameter_out_of_range"),
}


def named(table: list[tuple[str, str, dict[str, Any]]]) -> list[Any]:
    return [pytest.param(*row, id=f"{row[0].split('/')[2]} {row[1]}") for row in table]


@pytest.fixture(scope="module", autouse=True)
def rows(shared: Api) -> None:
    make_shown(make_instrument("EURUSD"))
    put_quote("EURUSD")
    # Where no engine runs, no ticks are kept.
    keep(runtime.epoch(), batch(runtime.epoch(), "EURUSD", [1]))
    make_signal()


@pytest.mark.parametrize(("path", "name", "told"), named(COUNTS))
def test_what_is_no_whole_number_is_refused(shared: Api, path: str, name: str, told: dict[str, Any]) -> None:
    for value in NO_NUMBERS:
        refusal(shared.ask(f"{path}?{name}={value}"), 400, "invalid_parameter", field=name, **told)


@pytest.mark.parametrize(("path", "name", "told"), named(COUNTS))
def test_number_out_of_range_is_refused_and_never_clamped(
    shared: Api, path: str, name: str, told: dict[str, Any]
) -> None:
    for value in (*OUT_OF_RANGE, told["max"] + 1):
        refusal(shared.ask(f"{path}?{name}={value}"), 400, "parameter_out_of_range", field=name, **told)


@pytest.mark.parametrize(("path", "name", "told"), named(WORDS))
def test_what_is_none_of_the_allowed_words_is_refused(
    shared: Api, path: str, name: str, told: dict[str, Any]
) -> None:
    code = "invalid_timeframe" if name == "timeframe" else "invalid_parameter"
    for value in NO_WORDS:
        refusal(shared.ask(f"{path}?{name}={value}"), 400, code, field=name, **told)


@pytest.mark.parametrize(
    ("path", "name"),
    [
        *((path.partition("?")[0], name) for path in RANGES for name in ("start", "end")),
        *(("/api/signals", name) for name in ("closed_start", "closed_end")),
    ],
)
def test_what_is_no_time_is_refused(shared: Api, path: str, name: str) -> None:
    for value, code in NO_TIMES.items():
        refusal(shared.ask(f"{path}?{name}={value}"), 400, code, field=name)


@pytest.mark.parametrize("path", RANGES)
def test_day_is_its_first_moment_in_every_range(shared: Api, path: str) -> None:
    asked = path + ("&" if "?" in path else "?")
    for at in ("2025-03-03T23:59:59.999Z", "2025-03-04T00:00:00Z", "2025-03-04T23:59:59.999Z"):
        make_signal(published_at=datetime.fromisoformat(at))
        make_news(at, published_at=datetime.fromisoformat(at))
    day = shared.ask(f"{asked}start=2025-03-04&end=2025-03-05")
    assert day.status_code == 200
    assert day.json() == shared.ask(f"{asked}start=2025-03-04T00:00:00Z&end=2025-03-05T00:00:00Z").json()
    if path in ("/api/signals?status=all", "/api/news"):
        assert {item["timestamp"][:10] for item in day.json()["items"]} == {"2025-03-04"}
        assert shared.ask(f"{asked}start=2025-03-04&end=2025-03-04").json()["items"] == []


@pytest.mark.parametrize("path", ["/api/market/EURUSD/history", "/api/signals", "/api/news"])
def test_span_that_ends_before_it_starts_is_refused(shared: Api, path: str) -> None:
    refusal(shared.ask(f"{path}?start=2000&end=1000"), 400, "invalid_parameter", field="end")
    assert shared.ask(f"{path}?start=1000&end=1000").status_code == 200


@pytest.mark.parametrize(
    ("value", "code"), [("-1", "invalid_parameter"), ("1000000000", "parameter_out_of_range")]
)
def test_position_of_the_ledger_is_a_whole_number(shared: Api, value: str, code: str) -> None:
    refusal(shared.ask(f"/api/signals/ledger?after={value}"), 400, code, field="after", max=999_999_999)


def test_what_is_no_symbol_is_not_found(shared: Api) -> None:
    for value in (*NO_WORDS, "EURUSD,XAUUSD", "*", "EURUSD%00", "%D0%95URUSD"):
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
        ("/api/signals", "user", "marta marta"),
        ("/api/signals/ledger", "after", "1 2"),
        ("/api/archive", "limit", "1 2"),
        ("/api/analysis/EURUSD", "model", "tickwire-analyst-1 tickwire-analyst-1"),
        ("/api/news", "limit", "5 5"),
        ("/api/orderflow/EURUSD", "start", "1 1"),
        ("/api/orderflow/EURUSD", "end", "1 2"),
    ],
)
def test_parameter_given_twice_is_refused(shared: Api, path: str, name: str, values: str) -> None:
    query = "&".join(f"{name}={value}" for value in values.split(" "))
    refusal(shared.ask(f"{path}?{query}"), 400, "invalid_parameter", field=name)


def test_list_may_be_given_in_parts(shared: Api) -> None:
    def answered(query: str) -> Any:
        answer = shared.ask(f"/api/quotes?{query}").json()
        return [each["symbol"] for part in ("items", "rejected") for each in answer[part]]

    assert answered("symbols=NOPE&symbols=EURUSD,ALSO&symbols=NOPE") == ["EURUSD", "NOPE", "ALSO"]
    assert answered("&".join(f"symbols=A{number}" for number in range(200))) == [f"A{n}" for n in range(200)]
    for query in (
        "news?category=gold&category=nothing",
        "news?expand=id&expand=",
        "symbols?expand=&expand=digits",
    ):
        answer = shared.ask(f"/api/{query}")
        assert (answer.status_code, answer.json()["error"]["field"]) == (
            400,
            query.split("?")[1].split("=")[0],
        )


def test_the_same_name_coded_differently_is_given_twice(shared: Api) -> None:
    refusal(shared.ask("/api/news?limit=5&l%69mit=6"), 400, "invalid_parameter", field="limit")


UNKNOWN = (
    *("nothing=1", "nothing=1&nothing=2", "page=2&offset=-1", "LIMIT=0&Bars=0", "limit[]=0", "%00=%00"),
    *("%FF=%FF", "&&&", "=", "nothing=" + "a" * 2000, "a" * 2000),
)
OF_OTHERS = ("bars=0", "limit=0", "timeframe=2h", "expand=nothing", "symbol=NOSUCH")


@pytest.mark.parametrize("path", PATHS)
def test_unknown_names_are_ignored(shared: Api, path: str) -> None:
    has_none = path in ("/api/market/EURUSD/quote", "/api/session", "/api/limits")
    for query in UNKNOWN + OF_OTHERS * has_none:
        assert shared.ask(f"{path}?{query}").status_code == 200, query


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
