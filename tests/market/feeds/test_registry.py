from __future__ import annotations

from collections.abc import Callable

import pytest
from pytest_django import Settings

from market.engine.feeds.registry import make_feed, venue_symbols
from market.engine.feeds.venues import binance, kraken, oanda
from tests.market.ticking import make_facts


@pytest.mark.parametrize(
    ("feed", "usual", "theirs"),
    [
        ("kraken", kraken.venue_symbol, "EUR/USD"),
        ("binance", binance.venue_symbol, "EURUSDT"),
        ("oanda", oanda.venue_symbol, "EUR_USD"),
    ],
)
def test_venues_usual_name_is_known_unless_the_instrument_names_another(
    feed: str, usual: Callable[[str], str], theirs: str
) -> None:
    instruments = [
        make_facts("EURUSD", source=feed),
        make_facts("XAUUSD", source=f"{feed}:GOLD/1"),
        make_facts("DE30", source="demo", fallback=f"{feed}:DAX"),
    ]

    assert venue_symbols(feed, instruments, usual) == {"EURUSD": theirs, "XAUUSD": "GOLD/1", "DE30": "DAX"}


def test_each_venue_has_the_name_that_the_instrument_gives_it() -> None:
    both = [make_facts("BTCUSD", source="kraken:XBT/USD", fallback="binance")]

    assert venue_symbols("kraken", both, kraken.venue_symbol) == {"BTCUSD": "XBT/USD"}
    assert venue_symbols("binance", both, binance.venue_symbol) == {"BTCUSD": "BTCUSDT"}


def test_slash_at_the_end_of_an_address_does_no_harm(settings: Settings) -> None:
    settings.BINANCE_WS_URL, settings.BINANCE_REST_URL = "wss://venue.example/", "https://venue.example/"

    feed = make_feed("binance", [make_facts()])

    assert isinstance(feed, binance.BinanceFeed)
    assert (feed.url, feed.rest_url) == ("wss://venue.example/stream", "https://venue.example")


def test_feed_that_does_not_exist_is_told() -> None:
    with pytest.raises(LookupError, match="no feed 'nasdaq'"):
        make_feed("nasdaq", [])
