"""What a publisher with ordinary rights may try: to sell what they know to be worth less already."""

from __future__ import annotations

from decimal import Decimal

from core.threads import in_thread
from instruments.catalogue import catalogue
from instruments.models import Instrument
from market.prices.records import Tick
from signals_feed.models import Signal
from signals_feed.publishing.actions import current_quote, publish
from signals_feed.rules import SignalRefused, SignalTerms
from tests.market.ticking import NOON_MS
from tests.signals_feed.published_signals import make_publisher

from .watched_engine import WatchedEngine, run


def test_nobody_sells_at_the_old_price_while_a_lower_one_is_refused_as_an_outlier(
    instrument: Instrument,
) -> None:
    anna = make_publisher()
    Instrument.objects.update(outlier_percent=Decimal("0.5"))

    def sell() -> str:
        terms = SignalTerms("EURUSD", "sell", Decimal("1.0802"), Decimal("1.0600"))
        try:
            publish(terms, anna, current_quote("EURUSD"))
        except SignalRefused as refused:
            return refused.code
        return ""

    async def act(watched: WatchedEngine) -> str:
        await catalogue.load()
        watched.tick(1.0800, 1.0801, NOON_MS)
        for after_ms in (1, 2):
            far = Tick("EURUSD", 1.0599, 1.0600, NOON_MS + after_ms, 1.0)
            assert watched.engine.accept(far, far.time_ms) == "outlier"
        watched.runner.tell()
        code = await in_thread(sell)
        await watched.settle()
        watched.tick(1.0599, 1.0600, NOON_MS + 3)
        await watched.settle()
        return code

    assert run(act) == "unsettled"
    assert not Signal.objects.exists()
