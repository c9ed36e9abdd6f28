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


def test_signal_that_another_process_has_changed_shows_at_once(api: Api) -> None:
    instrument = make_instrument()
    signal = make_signal(instrument, entry=Decimal("1.08420001"), take_profit=Decimal(2))
    (shown,) = items(api, "/api/signals?status=all")
    assert (shown["status"], shown["user"]) == ("active", signal.user.username)
    # Beyond the driver's floats, so it is rounded by the instrument.
    assert (shown["entry"], shown["take_profit"]) == (1.0842, 2.0)

    User.objects.filter(pk=signal.user_id).update(username="renamed")
    assert items(api, "/api/signals")[0]["user"] == "renamed"
    terms = {name: getattr(signal, name) for name in ("direction", "entry", "stop_loss", "take_profit")}
    terms |= {"tradable_price": signal.tradable_price, "published_at": NOON}
    closed = closed_terms(terms, instrument)
    Signal.objects.filter(pk=signal.pk).update(status="closed", **closed)
    assert items(api, "/api/signals?status=all")[0]["pnl"] == float(closed["pnl"])


def test_news_that_another_process_has_changed_show_at_once(api: Api) -> None:
    item = NewsItem.objects.filter(pk=make_news(sentiment_score=0.4).pk)
    assert items(api, "/api/news")[0]["sentiment"] == "bullish"
    item.update(sentiment_score=-0.4)
    assert items(api, "/api/news")[0]["sentiment"] == "bearish"
    item.update(status="rejected")
    assert items(api, "/api/news") == []


def test_candle_that_closes_or_goes_on_shows_at_once(api: Api) -> None:
    make_instrument("EURUSD")
    put_quote("EURUSD")
    for hour, price, shown in ((0, 1.08, [1.08]), (0, 1.3, [1.3]), (1, 1.2, [1.3, 1.2])):
        put_candles("EURUSD", "1h", [NOON_MS + hour * HOUR_MS], price=price)
        assert [candle["low"] for candle in api.ask("/api/market/EURUSD").json()["ohlcv"]] == shown
