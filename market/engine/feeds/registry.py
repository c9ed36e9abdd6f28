"""From a feed's name to the feed, with its settings. Each is imported when an instrument names it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from django.conf import settings

from core.clock import now_ms
from instruments.catalogue import InstrumentFacts, catalogue

from .feed import MarketFeed


def make_feed(
    name: str,
    instruments: list[InstrumentFacts],
    known_ms: Mapping[str, int] | None = None,
    since_ms: int | None = None,
) -> MarketFeed:
    """`known_ms` is the time of each symbol's last tick; what is simulated goes on after it."""
    if name == "demo":
        from market.engine.feeds.simulated.demo_feed import DemoFeed

        return DemoFeed(
            settings.DEMO_SEED,
            since_ms=since_ms or now_ms(),
            known_ms=known_ms or {},
            # Asked for anew at every step, because hours and digits may be edited meanwhile.
            instruments=lambda: [facts for given in instruments if (facts := catalogue.find(given.symbol))],
            rate=settings.DEMO_RATE,
        )
    if name == "replay":
        from .replay import ReplayFeed

        return ReplayFeed(settings.REPLAY_DIR, instruments, settings.REPLAY_SPEED)
    if name == "kraken":
        from .venues import kraken

        names = venue_symbols(name, instruments, kraken.venue_symbol)
        return kraken.KrakenFeed(names, settings.KRAKEN_WS_URL, settings.KRAKEN_REST_URL)
    if name == "binance":
        from .venues import binance

        names = venue_symbols(name, instruments, binance.venue_symbol)
        return binance.BinanceFeed(names, settings.BINANCE_WS_URL, settings.BINANCE_REST_URL)
    if name == "oanda":
        from .venues import oanda

        names = venue_symbols(name, instruments, oanda.venue_symbol)
        access = settings.OANDA_TOKEN, settings.OANDA_ACCOUNT
        addresses = settings.OANDA_STREAM_URL, settings.OANDA_REST_URL
        return oanda.OandaFeed(names, *access, *addresses, candle_price=settings.CANDLE_PRICE)
    raise LookupError(f"There is no feed {name!r}.")


def venue_symbols(
    feed: str, instruments: list[InstrumentFacts], usual: Callable[[str], str]
) -> dict[str, str]:
    """Our symbol → the venue's: the usual one, unless the instrument says `kraken:BTC/USD`."""
    names = {}
    for facts in instruments:
        given = [name.partition(":")[2] for name in (facts.source, facts.fallback) if _feed(name) == feed]
        names[facts.symbol] = (given and given[0]) or usual(facts.symbol)
    return names


def _feed(name: str) -> str:
    return name.partition(":")[0]
