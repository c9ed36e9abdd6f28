"""What is remembered for speed never outlives the truth: a change shows in the very next answer."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from accounts.models import User
from news.models import NewsItem
from signals_feed.models import Signal
from tests.client import Api
from tests.factories import (
    NOON,
    closed_terms,
    make_instrument,
    make_news,
    make_signal,
    put_candles,
    put_quote,
)

HOUR_MS = 3_600_000
NOON_MS = int(NOON.timestamp() * 1000)


def items(api: Api, path: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = api.ask(path).json()["items"]
    return found


def test_closed_signal_shows_its_result_at_once(api: Api) -> None:
    instrument = make_instrument()
    signal = make_signal(instrument)
    assert items(api, "/api/signals?status=all")[0]["status"] == "active"

    terms = {name: getattr(signal, name) for name in ("direction", "entry", "stop_loss", "take_profit")}
    terms |= {"tradable_price": signal.tradable_price, "published_at": NOON}
    closed = closed_terms(terms, instrument)
    Signal.objects.filter(pk=signal.pk).update(status="closed", **closed)

    assert items(api, "/api/signals?status=all")[0]["pnl"] == float(closed["pnl"])


def test_renamed_publisher_shows_at_once(api: Api) -> None:
    signal = make_signal(make_instrument())
    assert items(api, "/api/signals")[0]["user"] == signal.user.username

    User.objects.filter(pk=signal.user_id).update(username="renamed")

    assert items(api, "/api/signals")[0]["user"] == "renamed"


def test_rescored_news_shows_at_once(api: Api) -> None:
    item = make_news(sentiment_score=0.4)
    assert items(api, "/api/news")[0]["sentiment"] == "bullish"

    NewsItem.objects.filter(pk=item.pk).update(sentiment_score=-0.4)

    assert items(api, "/api/news")[0]["sentiment"] == "bearish"


def test_withdrawn_news_is_gone_at_once(api: Api) -> None:
    item = make_news()
    assert len(items(api, "/api/news")) == 1

    NewsItem.objects.filter(pk=item.pk).update(status="rejected")

    assert items(api, "/api/news") == []


def test_price_beyond_the_driver_s_floats_is_rounded_by_the_instrument(api: Api) -> None:
    make_signal(make_instrument(), entry=Decimal("1.08420001"), take_profit=Decimal(2))

    signal = items(api, "/api/signals")[0]

    assert (signal["entry"], signal["take_profit"]) == (1.0842, 2.0)


def test_candle_that_closes_shows_at_once(api: Api) -> None:
    make_instrument("EURUSD")
    put_quote("EURUSD")
    put_candles("EURUSD", "1h", [NOON_MS])
    assert len(api.ask("/api/market/EURUSD").json()["ohlcv"]) == 1

    put_candles("EURUSD", "1h", [NOON_MS + HOUR_MS], price=1.2)

    assert [candle["low"] for candle in api.ask("/api/market/EURUSD").json()["ohlcv"]] == [1.08, 1.2]


def test_candle_that_goes_on_replaces_what_was_remembered(api: Api) -> None:
    make_instrument("EURUSD")
    put_quote("EURUSD")
    put_candles("EURUSD", "1h", [NOON_MS], price=1.08)
    assert api.ask("/api/market/EURUSD").json()["ohlcv"][0]["low"] == 1.08

    put_candles("EURUSD", "1h", [NOON_MS], price=1.3)

    assert [candle["low"] for candle in api.ask("/api/market/EURUSD").json()["ohlcv"]] == [1.3]
