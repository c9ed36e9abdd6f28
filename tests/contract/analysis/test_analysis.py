"""GET /api/analysis/{symbol}: what it says, and what it costs."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from httpx import Response
from time_machine import Traveller

from accounts.limits.tiers import change_tier
from accounts.models import Account, AiUsage, Tier
from tests.client import Api
from tests.contract.answers import MILLISECONDS, refusal
from tests.factories import (
    NOON,
    make_account,
    make_instrument,
    make_key,
    make_news,
    make_signal,
    make_tier,
    make_tiers,
    put_candles,
    put_quote,
)
from tests.patience import wait_until

# A day that ended between two calls would give the allowance anew.
pytestmark = [pytest.mark.usefixtures("clock"), pytest.mark.services]
MODEL = "tickwire-analyst-1"
HOUR_MS = 3_600_000
NOON_S = int(NOON.timestamp())
NOON_MS = NOON_S * 1000
FIELDS = {
    *("symbol", "model", "generated_at", "market_state", "price", "direction", "score", "confidence"),
    *("summary", "weights_sum", "drivers", "levels", "as_of", "cached"),
}
DRIVERS = {"trend", "news", "signals", "order_flow", "volatility"}
_numbers = itertools.count(1)


@pytest.fixture(scope="module", autouse=True)
def rows(shared: Api) -> None:
    make_tiers()
    make_tier("pair", ai_calls_per_day=2)


def new_symbol() -> str:
    """One that nobody has asked about, so that an answer is made."""
    symbol = f"PAIR{next(_numbers)}"
    make_instrument(symbol)
    return symbol


def make_caller(tier: str = "pair") -> tuple[Account, str]:
    account = make_account(tier=tier)
    return account, make_key(account)


def analyse(api: Api, symbol: str, key: str = "own", query: str = "", **options: Any) -> Response:
    return api.ask(f"/api/analysis/{symbol}{query}", key=key, **options)


def used_up(api: Api) -> str:
    _, key = make_caller()
    for _ in range(2):
        assert analyse(api, new_symbol(), key).status_code == 200
    return key


def remaining(api: Api, key: str) -> int:
    left: int = api.ask("/api/limits", key=key).json()["ai_calls"]["remaining"]
    return left


def drivers_of(response: Response) -> dict[str, Any]:
    return {driver["name"]: driver for driver in response.json()["drivers"]}


def test_body_has_its_fields_also_with_a_quote_of_a_clock_that_is_ahead(
    clock: Traveller, shared: Api
) -> None:
    symbol = new_symbol()
    put_quote(symbol, at_ms=NOON_MS + 2_000)
    response = analyse(shared, symbol)
    assert (response.status_code, response.headers["Content-Type"]) == (200, "application/json")
    body = response.json()
    assert set(body) == FIELDS
    assert (body["symbol"], body["model"], body["cached"]) == (symbol, MODEL, False)
    assert {driver["name"] for driver in body["drivers"]} == DRIVERS
    assert MILLISECONDS.fullmatch(body["generated_at"])
    assert body["price"] is not None
    assert body["as_of"]["quote"] == body["generated_at"]


def test_symbol_of_which_nothing_is_known_gets_an_honest_answer(shared: Api) -> None:
    body = analyse(shared, new_symbol()).json()
    assert (body["direction"], body["score"], body["confidence"]) == ("neutral", 0, 0)
    assert (body["weights_sum"], body["price"]) == (0, None)
    assert not any(driver["available"] or driver["weight"] for driver in body["drivers"])
    assert set(body["as_of"].values()) == {None}
    assert "no quote yet" in body["summary"]


def test_answer_names_the_news_signals_and_candles_it_is_made_of(clock: Traveller, shared: Api) -> None:
    instrument = make_instrument("EURUSD")
    put_quote("EURUSD", at_ms=NOON_MS - 1000)
    put_candles("EURUSD", "1h", [NOON_MS - number * HOUR_MS for number in range(80, 0, -1)])
    item = make_news("Euro jumps", sentiment_score=0.7, published_at=NOON - timedelta(hours=1))
    item.symbols.add(instrument)
    make_signal(instrument, published_at=NOON - timedelta(hours=2))

    response = analyse(shared, "EURUSD")

    found, body = drivers_of(response), response.json()
    shown = found["news"]["evidence"]["items"]
    assert [(each["id"], each["relevance"]) for each in shown] == [(item.pk, "symbol")]
    assert found["signals"]["evidence"] == {"buys": 1, "sells": 0, "r_at_risk": 0.97}
    assert [each["timeframe"] for each in found["trend"]["evidence"]["timeframes"]] == ["1h"]
    assert found["trend"]["direction"] == "bullish"
    assert not found["order_flow"]["available"]
    assert body["weights_sum"] == 0.85
    assert body["score"] == pytest.approx(sum(each["contribution"] for each in body["drivers"]), abs=0.001)
    assert body["as_of"]["news"] == "2026-11-18T11:00:00.000Z"
    assert body["as_of"]["candles"] == "2026-11-18T12:00:00.000Z"


def test_good_news_of_the_yen_are_bad_for_what_is_priced_in_it(clock: Traveller, shared: Api) -> None:
    instrument = make_instrument("USDJPY")
    own, dollar, *others = (
        make_news(title, category=category, sentiment_score=0.7, published_at=NOON - timedelta(hours=1))
        for title, category in (
            ("Yen firms on talk of a hike", "forex"),
            ("Dollar firms", "forex"),
            ("Peso firms", "forex"),
            ("Gold gains as the yen firms", "gold"),
        )
    )
    for item in (own, others[1]):
        item.symbols.add(instrument)

    found = drivers_of(analyse(shared, "USDJPY"))["news"]

    shown = [(each["id"], each["sentiment"], each["side"]) for each in found["evidence"]["items"]]
    assert shown == [(own.pk, "bullish", -1), (dollar.pk, "bullish", 1)]
    assert found["direction"] == "bearish"


def test_stale_market_lowers_the_confidence(clock: Traveller, shared: Api) -> None:
    confidences = []
    for age_ms in (1_000, 61_000):
        symbol = new_symbol()
        put_quote(symbol, at_ms=NOON_MS - age_ms)
        put_candles(symbol, "1h", [NOON_MS - number * HOUR_MS for number in range(80, 0, -1)])
        body = analyse(shared, symbol).json()
        confidences.append((body["market_state"], body["confidence"]))
    (fresh, surer), (stale, less_sure) = confidences
    assert (fresh, stale) == ("open", "stale")
    assert 0 < less_sure < surer


# What it costs.
def test_made_answer_costs_one_ai_call_and_the_same_again_none_whoever_asks(
    clock: Traveller, shared: Api
) -> None:
    _, key = make_caller("free")
    symbol = new_symbol()
    first = analyse(shared, symbol, key)
    told = [first.headers[f"X-AI-{name}"] for name in ("Limit", "Remaining", "Reset")]
    assert told == ["5", "4", str(NOON_S + 12 * 3600)]
    assert first.headers["X-RateLimit-Remaining"] == "59"
    for written in (symbol, symbol.lower(), f"{symbol}/", f"{symbol}?model={MODEL}"):
        again = analyse(shared, written, key)
        assert again.json() == first.json() | {"cached": True}
        assert again.headers["X-AI-Remaining"] == "4"
    assert again.headers["X-RateLimit-Remaining"] == "55"
    assert remaining(shared, key) == 4
    other = analyse(shared, symbol, make_caller()[1])
    assert (other.json()["cached"], other.headers["X-AI-Remaining"]) == (True, "2")


def test_head_costs_what_get_costs(shared: Api) -> None:
    _, key = make_caller()
    symbol = new_symbol()
    response = analyse(shared, symbol, key, method="HEAD")
    assert (response.status_code, response.content) == (200, b"")
    assert response.headers["X-AI-Remaining"] == "1"
    assert analyse(shared, symbol, key).json()["cached"] is True


def test_refusal_costs_no_ai_call_and_a_used_up_allowance_is_told_first(shared: Api) -> None:
    _, key = make_caller()
    response = analyse(shared, new_symbol(), key, "?model=oracle")
    refusal(response, 400, "invalid_parameter", field="model", allowed=[MODEL])
    assert response.headers["X-AI-Remaining"] == "2"
    refusal(analyse(shared, "NOSUCH", key), 404, "symbol_not_found", field="symbol")
    assert remaining(shared, key) == 2
    refusal(analyse(shared, "NOSUCH", used_up(shared), "?model=oracle"), 429, "ai_quota_exceeded")


def test_answer_is_kept_for_five_minutes_and_no_longer(clock: Traveller, shared: Api) -> None:
    symbol = new_symbol()
    cached = []
    for seconds in (0, 299.9, 0.1):
        clock.shift(seconds)
        cached.append(analyse(shared, symbol).json()["cached"])
    assert cached == [False, True, False]


def test_over_the_allowance_is_refused_until_midnight_and_what_is_cached_is_not(
    clock: Traveller, shared: Api
) -> None:
    key, known, symbol = used_up(shared), new_symbol(), new_symbol()
    analyse(shared, known)
    refused = analyse(shared, symbol, key)
    message = refusal(refused, 429, "ai_quota_exceeded")
    assert "2 AI calls a day" in message
    assert "New ones begin at 00:00 UTC, in 12 h 0 min;" in message
    assert refused.headers["Retry-After"] == str(12 * 3600)
    assert refused.headers["X-AI-Remaining"] == "0"
    assert refused.headers["X-AI-Reset"] == str(NOON_S + 12 * 3600)
    assert analyse(shared, known, key).json()["cached"] is True
    clock.shift(0.25)
    clock.shift(int(analyse(shared, symbol, key).headers["Retry-After"]))
    assert analyse(shared, symbol, key).headers["X-AI-Remaining"] == "1"


def test_midnight_gives_the_allowance_once(clock: Traveller, shared: Api) -> None:
    key = used_up(shared)
    clock.move_to(datetime(2026, 11, 18, 23, 59, 59, 999_000, tzinfo=UTC))
    before = analyse(shared, new_symbol(), key)
    clock.move_to(datetime(2026, 11, 19, tzinfo=UTC))
    after = [analyse(shared, new_symbol(), key) for _ in range(3)]
    assert before.headers["Retry-After"] == "1"
    assert [response.status_code for response in (before, *after)] == [429, 200, 200, 429]
    assert after[0].headers["X-AI-Reset"] == str(NOON_S + 36 * 3600)


def test_allowance_of_nothing_gets_what_is_cached_and_no_more(shared: Api) -> None:
    key = make_key(make_account(tier=make_tier("none", ai_calls_per_day=0)))
    symbol = new_symbol()
    refused = analyse(shared, symbol, key)
    analyse(shared, symbol)
    assert "no AI calls" in refusal(refused, 429, "ai_quota_exceeded")
    assert refused.headers["X-AI-Limit"] == "0"
    assert analyse(shared, symbol, key).status_code == 200


def test_keys_of_one_account_share_the_allowance(shared: Api) -> None:
    account, first = make_caller()
    second = make_key(account)
    statuses = [analyse(shared, new_symbol(), key).status_code for key in (first, second, first)]
    assert statuses == [200, 200, 429]


@pytest.mark.parametrize(
    ("used", "before", "after", "left"), [(1, "free", "premium", 49), (30, "premium", "free", 0)]
)
def test_changed_tier_counts_what_was_used_before(
    shared: Api, used: int, before: str, after: str, left: int
) -> None:
    account, key = make_caller(before)
    AiUsage.objects.create(account=account, day=datetime.now(UTC).date(), used=used)
    change_tier(account, Tier.objects.get(name=after), by="test")
    wait_until(lambda: remaining(shared, key) == left)
    assert analyse(shared, new_symbol(), key).headers["X-AI-Remaining"] == str(max(left - 1, 0))
