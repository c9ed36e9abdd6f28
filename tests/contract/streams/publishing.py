"""A new signal or item of news as the service enters it, whatever the market is doing."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from accounts.models import User
from core import clock
from instruments.models import Instrument
from news.models import NewsItem
from news.newsroom import publish
from signals_feed.models import Signal
from signals_feed.publishing.actions import enter_feed
from signals_feed.rules import Quoted
from tests.factories import make_news

# No price of a test comes near its stop or its target.
TERMS = {"entry": "1.0842", "stop_loss": "0.0001", "take_profit": "900", "tradable_price": "1.0842"}


def publish_signal(symbol: str, publisher: User) -> str:
    """Its id."""
    terms = {name: Decimal(price) for name, price in TERMS.items()}
    instrument = Instrument.objects.get(symbol=symbol)
    signal = Signal(instrument=instrument, user=publisher, direction="buy", **terms)
    enter_feed(signal, Quoted(Decimal("1.0840"), Decimal("1.0842"), clock.now_ms()))
    return str(signal.pk)


def make_draft(*symbols: str, **fields: Any) -> NewsItem:
    item = make_news(**({"status": "draft"} | fields))
    item.symbols.set(Instrument.objects.filter(symbol__in=symbols))
    return item


def publish_news(*symbols: str, **fields: Any) -> str:
    """Its id, as a text."""
    item = make_draft(*symbols, **fields)
    publish(item, by="curator")
    return str(item.pk)
