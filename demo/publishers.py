"""The demo's publishers at work: programs that publish on the simulated market through the service."""

import logging
from collections.abc import Sequence
from uuid import NAMESPACE_OID, uuid5

from django.conf import settings

from accounts.models import User
from core import clock
from core.background import BackgroundLoop
from core.database import UNANSWERED
from core.fault_log import LastingFault
from core.threads import in_thread
from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.facts import TEST_SYMBOL, InstrumentFacts
from market import runtime as market
from market.models import UnfinishedPast
from signals_feed.models import Signal
from signals_feed.publishing import current_quote, publish
from signals_feed.rules import SignalRefused

from .market import priced_by_demo
from .publisher_rules import BARS, PUBLISHERS, TIMEFRAME, DemoPublisher, MarketView, strongest, terms_of

logger = logging.getLogger(__name__)
LOOK_S = 10.0

# Each publishes one signal in this time, if its rule finds one, and has no more active ones than this.
INTERVAL_MS = 20 * MINUTE_MS
MOST_ACTIVE = 6


async def publish_all() -> None:
    # What they publish follows what the demo publishes of its past.
    if await in_thread(UnfinishedPast.objects.exists):
        return
    views = [view for facts in priced_by_demo() if (view := view_of(facts)) is not None]
    for publisher in PUBLISHERS:
        await in_thread(publish_one, publisher, views, clock.now_ms())


def view_of(facts: InstrumentFacts) -> MarketView | None:
    """None for an instrument that cannot be traded now or is withheld, and for the test instrument."""
    quote = market.quote(facts.symbol)
    if facts.symbol == TEST_SYMBOL or facts.is_withheld or quote is None or market.state(facts) != "open":
        return None
    bars = market.prices.candles(facts).rows(TIMEFRAME, BARS, closed_only=True)
    return MarketView(facts.symbol, quote.bid, quote.ask, bars)


def publish_one(publisher: DemoPublisher, views: Sequence[MarketView], now_ms: int) -> Signal | None:
    """Publishes once in an interval, however many processes ask: a token is accepted only once."""
    user = User.objects.filter(username=publisher.name, account__is_demo=True).first()
    token = uuid5(NAMESPACE_OID, f"{publisher.name}:{now_ms // INTERVAL_MS}")
    own = Signal.objects.filter(user=user)
    if user is None or own.filter(token=token).exists():
        return None
    taken = set(own.active().values_list("instrument__symbol", flat=True))
    if len(taken) >= MOST_ACTIVE:
        return None
    idea = strongest(publisher.rule, [view for view in views if view.symbol not in taken])
    quote = None if idea is None else current_quote(idea.symbol)
    if idea is None or quote is None:
        return None
    terms = terms_of(idea, quote.bid, quote.ask, catalogue.get_any(idea.symbol).digits)
    try:
        return publish(terms, user, quote, token)
    except SignalRefused as refusal:
        # The market has moved or closed since it was read.
        logger.info("%s tries again: %s", publisher.name, refusal)
        return None


demo_publishers = BackgroundLoop(
    "publishers of the demo",
    publish_all,
    fault=LastingFault(logger, "The demo publishers wait for the database"),
    broke="The demo publishers failed and continue",
    passing=UNANSWERED,
    before=LOOK_S,
)


async def start_in_demo() -> None:
    if settings.DEMO:
        await demo_publishers.start()
