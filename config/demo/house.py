"""The house publishers at work: programs that publish on the simulated market through the service."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from uuid import NAMESPACE_OID, uuid5

import msgspec
from django.conf import settings
from django.db import Error

from accounts.exceptions import Overloaded
from accounts.models import User
from accounts.tasks import end
from accounts.threads import in_thread
from instruments.catalogue import InstrumentFacts, catalogue
from market import services as market
from market.prices.timeframes import MINUTE_MS
from signals_feed import quotes
from signals_feed.house import BARS, PUBLISHERS, TIMEFRAME, Bar, Publisher, View, levels, strongest
from signals_feed.models import Signal
from signals_feed.services import Refused, Terms, publish

from .candles import priced_by_demo
from .instruments import TEST

logger = logging.getLogger(__name__)

LOOK_S = 10.0
# One signal of each in such a time, if its rule finds one, and no more active ones than that.
SLOT_MS = 20 * MINUTE_MS
MOST_ACTIVE = 6

told = msgspec.json.Decoder(list[dict[str, float | str]])


class House:
    def __init__(self) -> None:
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        if settings.DEMO:
            self._task = asyncio.create_task(self._work(), name="house publishers")

    async def stop(self) -> None:
        await end(self._task)
        self._task = None

    async def _work(self) -> None:
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                views = [view for facts in priced_by_demo() if (view := view_of(facts)) is not None]
                for publisher in PUBLISHERS:
                    await in_thread(publish_one, publisher, views, market.now_ms())
            except (Error, Overloaded) as error:
                logger.warning("The house publishers wait for the database: %s", error)
            except Exception:  # noqa: BLE001 - the top of a task: what broke is logged and tried again
                logger.exception("The house publishers broke and go on")


def view_of(facts: InstrumentFacts) -> View | None:
    """None for what cannot be traded now. Nobody has an opinion on the test instrument."""
    quote = market.quote(facts.symbol)
    if facts.symbol == TEST or quote is None or market.state(facts) != "open":
        return None
    history = market.prices.history(facts)
    bars = history.bars(TIMEFRAME, BARS, closed_only=True)
    candles = told.decode(b"[%s]" % bars.ohlcv)
    closed = [Bar(*(float(each[name]) for name in ("high", "low", "close"))) for each in candles]
    return View(facts.symbol, quote.bid, quote.ask, closed)


def publish_one(publisher: Publisher, views: Sequence[View], now_ms: int) -> Signal | None:
    """Once in a slot, whichever process asks and however often: the token of a slot is taken once."""
    user = User.objects.filter(username=publisher.name, account__is_demo=True).first()
    token = uuid5(NAMESPACE_OID, f"{publisher.name}:{now_ms // SLOT_MS}")
    own = Signal.objects.filter(user=user)
    if user is None or own.filter(token=token).exists():
        return None
    taken = set(own.active().values_list("instrument__symbol", flat=True))
    if len(taken) >= MOST_ACTIVE:
        return None
    idea = strongest(publisher.rule, [view for view in views if view.symbol not in taken])
    quote = None if idea is None else quotes.current(idea.symbol)
    if idea is None or quote is None:
        return None
    chosen = levels(idea, quote.bid, quote.ask, catalogue.get_any(idea.symbol).digits)
    try:
        return publish(Terms(idea.symbol, idea.direction, *chosen), user, quote, token)
    except Refused as refusal:
        # The market moved or closed since it was looked at.
        logger.info("%s tries again: %s", publisher.name, refusal)
        return None


house = House()
