"""Rows that the database itself refuses, with the constraint that does it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from accounts.models import AiUsage, ApiKey, Tier
from instruments.models import Instrument, TradingCalendar
from market.models import FormingMinute, LastQuote
from tests.factories import (
    NOON,
    make_account,
    make_calendar,
    make_candle,
    make_instrument,
    make_key,
    make_tier,
)

pytestmark = [pytest.mark.django_db, pytest.mark.services]

BAR = [
    ("high_is_highest", {"high": "1.0800"}),
    ("high_is_highest", {"open": "1.0900"}),
    ("low_is_lowest", {"low": "1.0803"}),
    ("low_is_lowest", {"low": "0"}),
    ("volume_is_not_negative", {"volume": "-1"}),
    ("ask_extremes_are_ordered", {"ask_high": "1.08", "ask_low": "1.09"}),
    ("ask_extremes_are_ordered", {"ask_high": "1.08", "ask_low": "0"}),
    # Compared with NULL nothing is false, and a check refuses only what is.
    ("ask_extremes_are_ordered", {"ask_high": "1.08"}),
    ("ask_extremes_are_ordered", {"ask_low": "1.08"}),
]


def refuses(make: Callable[[], Any], name: str) -> None:
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        make()


def decimals(values: dict[str, str]) -> dict[str, Any]:
    return {name: Decimal(value) for name, value in values.items()}


@pytest.mark.parametrize(("name", "bad"), BAR)
def test_bad_candle(name: str, bad: dict[str, str]) -> None:
    instrument = make_instrument()
    refuses(lambda: make_candle(instrument, **decimals(bad)), f"candle_{name}")


@pytest.mark.parametrize(("name", "bad"), BAR)
def test_bad_forming_minute(name: str, bad: dict[str, str]) -> None:
    instrument = make_instrument()
    prices = {"open": "1.0801", "high": "1.0804", "low": "1.0800", "close": "1.0802", "volume": "12"}
    values = decimals(prices | bad)
    refuses(
        lambda: FormingMinute.objects.create(instrument=instrument, opened_at=NOON, **values),
        f"formingminute_{name}",
    )


def test_candle_of_an_unknown_timeframe() -> None:
    instrument = make_instrument()
    refuses(lambda: make_candle(instrument, "2h"), "candle_timeframe_is_known")


def test_second_candle_of_an_interval() -> None:
    instrument = make_instrument()
    make_candle(instrument)
    refuses(lambda: make_candle(instrument), "(?i)unique")


@pytest.mark.parametrize(("bid", "ask"), [("1.09", "1.08"), ("0", "1"), ("-1", "1")])
def test_bad_last_quote(bid: str, ask: str) -> None:
    instrument = make_instrument()
    prices = decimals({"bid": bid, "ask": ask})
    refuses(
        lambda: LastQuote.objects.create(instrument=instrument, quoted_at=NOON, **prices),
        "last_quote_is_not_crossed",
    )


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("symbol_is_upper_case", {"symbol": "eurusd"}),
        ("symbol_is_upper_case", {"symbol": "EURusd"}),
        ("symbol_is_upper_case", {"symbol": ""}),
        ("symbol_is_upper_case", {"symbol": "-EUR"}),
        ("symbol_is_upper_case", {"symbol": "EUR USD"}),
        ("symbol_is_upper_case", {"symbol": "EUR/USD"}),
        ("symbol_is_upper_case", {"symbol": "EURUSD\n"}),
        ("sizes_are_positive", {"pip_size": 0}),
        ("sizes_are_positive", {"contract_size": 0}),
        ("sizes_are_positive", {"min_lot": 0}),
        ("sizes_are_positive", {"stale_after_s": 0}),
        ("lots_are_ordered", {"min_lot": 60}),
        ("margin_is_a_share", {"margin_rate": 0}),
        ("margin_is_a_share", {"margin_rate": "1.1"}),
        ("digits_fit", {"digits": 9}),
    ],
)
def test_bad_instrument(name: str, bad: dict[str, Any]) -> None:
    refuses(lambda: make_instrument(**bad), f"instrument_{name}")


def test_second_instrument_of_a_symbol() -> None:
    make_instrument()
    refuses(make_instrument, "(?i)unique")


@pytest.mark.parametrize("symbol", ["EURUSD", "BRK.B", "US500", "A_B-C", "4GLD"])
def test_symbols_of_all_kinds_are_taken(symbol: str) -> None:
    assert Instrument.objects.get(pk=make_instrument(symbol).pk).symbol == symbol


def test_second_calendar_of_a_name() -> None:
    make_calendar("fx")
    refuses(lambda: TradingCalendar.objects.create(name="fx", sessions="24/7"), "(?i)unique")


def test_tier_without_requests() -> None:
    refuses(lambda: make_tier("none", requests_per_minute=0), "tier_allows_requests")


@pytest.mark.parametrize("field", ["rank", "requests_per_minute", "streams", "ai_calls_per_day"])
def test_tier_below_nought(field: str) -> None:
    refuses(lambda: make_tier("none", **{field: -1}), "(?i)check")


def test_second_tier_of_a_name() -> None:
    limits = {"requests_per_minute": 1, "streams": 1, "ai_calls_per_day": 1}
    refuses(lambda: Tier.objects.create(name="free", **limits), "(?i)unique")


@pytest.mark.parametrize("digest", ["", "f" * 63, "F" * 64, "g" * 64, "tw_live_" + "a" * 56])
def test_key_whose_digest_is_no_sha256(digest: str) -> None:
    account = make_account()
    refuses(
        lambda: ApiKey.objects.create(account=account, name="x", prefix="tw_live_x", digest=digest),
        "api_key_digest_is_sha256",
    )


@pytest.mark.parametrize("field", ["prefix", "digest"])
def test_second_key_of_a_prefix_or_digest(field: str) -> None:
    make_key()
    first = ApiKey.objects.get()
    fields = {"prefix": "tw_live_other", "digest": "a" * 64} | {field: getattr(first, field)}
    refuses(lambda: ApiKey.objects.create(account=first.account, name="x", **fields), "(?i)unique")


def test_second_row_of_a_day_of_ai_usage() -> None:
    account, day = make_account(), date(2026, 11, 18)
    AiUsage.objects.create(account=account, day=day)
    refuses(lambda: AiUsage.objects.create(account=account, day=day), "ai_usage_one_row_a_day|UNIQUE")


def test_ai_usage_below_nought() -> None:
    account, day = make_account(), datetime(2026, 11, 18, tzinfo=UTC).date()
    refuses(lambda: AiUsage.objects.create(account=account, day=day, used=-1), "(?i)check")
