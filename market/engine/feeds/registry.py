"""From a feed's name to the feed, with its settings."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from django.conf import settings

from core.clock import now_ms
from instruments.catalogue import catalogue
from instruments.facts import InstrumentFacts
from instruments.sources import DEMO, REPLAY

from ..venues import binance, kraken, oanda
from .demo_feed import DemoFeed
from .feed import MarketFeed
from .replay import ReplayFeed


class Venue(NamedTuple):
    usual_name: Callable[[str], str]
    """The venue's symbol for ours."""
    make_feed: Callable[[dict[str, str]], MarketFeed]
    """From the venue's symbols by ours."""
    addresses: tuple[str, ...]
    """The settings that say where it is reached."""
    other_own: tuple[str, ...] = ()
    """Addresses of its own beside those that are built in."""


VENUES = {
    "kraken": Venue(
        kraken.venue_symbol,
        lambda names: kraken.KrakenFeed(names, settings.KRAKEN_WS_URL, settings.KRAKEN_REST_URL),
        ("KRAKEN_WS_URL", "KRAKEN_REST_URL"),
    ),
    "oanda": Venue(
        oanda.venue_symbol,
        lambda names: oanda.OandaFeed(
            names,
            *(settings.OANDA_TOKEN, settings.OANDA_ACCOUNT),
            *(settings.OANDA_STREAM_URL, settings.OANDA_REST_URL),
            candle_price=settings.CANDLE_PRICE,
        ),
        ("OANDA_STREAM_URL", "OANDA_REST_URL"),
        oanda.LIVE_ADDRESSES,
    ),
    "binance": Venue(
        binance.venue_symbol,
        lambda names: binance.BinanceFeed(names, settings.BINANCE_WS_URL, settings.BINANCE_REST_URL),
        ("BINANCE_WS_URL", "BINANCE_REST_URL"),
    ),
}


def make_feed(
    name: str,
    instruments: list[InstrumentFacts],
    known_ms: Mapping[str, int] | None = None,
    since_ms: int | None = None,
) -> MarketFeed:
    """`known_ms` is the time of each symbol's last tick; what is simulated goes on after it."""
    if name == DEMO:
        return DemoFeed(
            settings.DEMO_SEED,
            since_ms=since_ms or now_ms(),
            known_ms=known_ms or {},
            # Asked for anew at every step, because hours and digits may be edited meanwhile.
            instruments=lambda: [facts for given in instruments if (facts := catalogue.find(given.symbol))],
            rate=settings.DEMO_RATE,
        )
    if name == REPLAY:
        return ReplayFeed(settings.REPLAY_DIR, instruments, settings.REPLAY_SPEED)
    if name in VENUES:
        venue = VENUES[name]
        return venue.make_feed(venue_symbols(name, instruments, venue.usual_name))
    raise LookupError(f"There is no feed {name!r}.")


def is_moved(feed: str) -> bool:
    """Whether it is a venue's, and comes from an address that is not the venue's own."""
    venue = VENUES.get(feed)
    if venue is None:
        return False
    own = (*venue.other_own, *(settings.BUILT_IN_ADDRESSES[name] for name in venue.addresses))
    return any(getattr(settings, name).rstrip("/") not in own for name in venue.addresses)


def venue_symbols(
    feed: str, instruments: list[InstrumentFacts], usual_name: Callable[[str], str]
) -> dict[str, str]:
    """The venue's symbols by ours: the usual one, unless the instrument says `kraken:BTC/USD`."""
    names = {}
    for facts in instruments:
        given = [name.partition(":") for name in (facts.source, facts.fallback)]
        own = next((theirs for named, _, theirs in given if named == feed), "")
        names[facts.symbol] = own or usual_name(facts.symbol)
    return names
