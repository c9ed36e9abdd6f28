"""Rows that the database itself refuses, with the constraint that does it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from django.db import IntegrityError, transaction

from accounts.models import Account, AiUsage, ApiKey, Tier
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


def candle(timeframe: str = "1m", **bad: str) -> None:
    make_candle(make_instrument(), timeframe, **decimals(bad))


def forming_minute(**bad: str) -> None:
    prices = {"open": "1.0801", "high": "1.0804", "low": "1.0800", "close": "1.0802", "volume": "12"}
    FormingMinute.objects.create(instrument=make_instrument(), opened_at=NOON, **decimals(prices | bad))


def last_quote(**prices: str) -> None:
    LastQuote.objects.create(instrument=make_instrument(), quoted_at=NOON, **decimals(prices))


def tier(**limits: int) -> None:
    make_tier("none", **limits)


def api_key(**fields: str) -> None:
    defaults = {"prefix": "tw_live_other", "digest": "a" * 64}
    account = Account.objects.first() or make_account()
    ApiKey.objects.create(account=account, name="x", **(defaults | fields))


def ai_usage(**used: int) -> None:
    account = Account.objects.first() or make_account()
    AiUsage.objects.create(account=account, day=date(2026, 11, 18), **used)


def decimals(values: dict[str, str]) -> dict[str, Any]:
    return {name: Decimal(value) for name, value in values.items()}


REFUSED: list[tuple[str, Callable[..., Any], dict[str, Any]]] = [
    *((f"candle_{name}", candle, bad) for name, bad in BAR),
    *((f"formingminute_{name}", forming_minute, bad) for name, bad in BAR),
    ("candle_timeframe_is_known", candle, {"timeframe": "2h"}),
    *(
        ("last_quote_is_not_crossed", last_quote, {"bid": bid, "ask": ask})
        for bid, ask in (("1.09", "1.08"), ("0", "1"), ("-1", "1"))
    ),
    *(
        ("instrument_symbol_is_upper_case", make_instrument, {"symbol": symbol})
        for symbol in ("eurusd", "EURusd", "", "-EUR", "EUR USD", "EUR/USD", "EURUSD\n")
    ),
    *(
        ("instrument_sizes_are_positive", make_instrument, {field: 0})
        for field in ("pip_size", "contract_size", "min_lot", "stale_after_s")
    ),
    ("instrument_lots_are_ordered", make_instrument, {"min_lot": 60}),
    ("instrument_margin_is_a_share", make_instrument, {"margin_rate": 0}),
    ("instrument_margin_is_a_share", make_instrument, {"margin_rate": "1.1"}),
    ("instrument_digits_fit", make_instrument, {"digits": 9}),
    ("tier_allows_requests", tier, {"requests_per_minute": 0}),
    *(("(?i)check", tier, {f: -1}) for f in ("rank", "requests_per_minute", "streams", "ai_calls_per_day")),
    *(
        ("api_key_digest_is_sha256", api_key, {"digest": digest})
        for digest in ("", "f" * 63, "F" * 64, "g" * 64, "tw_live_" + "a" * 56)
    ),
    ("(?i)check", ai_usage, {"used": -1}),
]


@pytest.mark.parametrize(("name", "make", "bad"), REFUSED)
def test_bad_row_is_refused(name: str, make: Callable[..., Any], bad: dict[str, Any]) -> None:
    with pytest.raises(IntegrityError, match=name), transaction.atomic():
        make(**bad)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (make_instrument, make_instrument),
        (candle, lambda: make_candle(Instrument.objects.get())),
        (lambda: make_calendar("fx"), lambda: TradingCalendar.objects.create(name="fx", sessions="24/7")),
        (
            lambda: make_tier("own"),
            lambda: Tier.objects.create(name="own", requests_per_minute=1, streams=1, ai_calls_per_day=1),
        ),
        (ai_usage, ai_usage),
        *((make_key, lambda f=f: api_key(**ApiKey.objects.values(f).get())) for f in ("prefix", "digest")),
    ],
)
def test_second_row_of_what_is_there_once_is_refused(
    first: Callable[[], Any], second: Callable[[], Any]
) -> None:
    first()
    with pytest.raises(IntegrityError, match="(?i)unique|ai_usage_one_row_a_day"), transaction.atomic():
        second()


@pytest.mark.parametrize("symbol", ["EURUSD", "BRK.B", "US500", "A_B-C", "4GLD"])
def test_symbols_of_all_kinds_are_taken(symbol: str) -> None:
    assert Instrument.objects.get(pk=make_instrument(symbol).pk).symbol == symbol
