"""What a publisher with ordinary rights may try: to sell what is worth less, or to make the price."""

from __future__ import annotations

from decimal import Decimal

import pytest
import time_machine

from core.threads import in_thread
from core.version import known_rules
from instruments.catalogue import catalogue
from instruments.models import Instrument
from market.prices.records import Tick
from market.push.keys import ingest_key_cache, issue_ingest_key
from signals_feed.models import Signal
from signals_feed.publishing.actions import current_quote, publish
from signals_feed.rules import SignalRefused, SignalTerms
from tests.factories import make_account
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


@pytest.mark.parametrize(("rules", "earned"), [(1, Decimal("12")), (2, Decimal("-0.0238"))])
def test_who_knows_the_next_price_earns_nothing_by_it(
    instrument: Instrument,
    clock: time_machine.Traveller,
    monkeypatch: pytest.MonkeyPatch,
    rules: int,
    earned: Decimal,
) -> None:
    """The rules of before are the control."""
    monkeypatch.setattr(known_rules, "asked", [lambda: rules])
    # The demo's may be dated as the test's clock is.
    anna = make_account(make_publisher(), is_demo=True).user
    terms = SignalTerms("EURUSD", "buy", Decimal("1.0838"), Decimal("1.0877"))

    async def act(watched: WatchedEngine) -> None:
        watched.tick(1.0840, 1.0841, NOON_MS)
        clock.shift(30)
        await in_thread(lambda: publish(terms, anna, current_quote("EURUSD")))
        await watched.settle()
        clock.shift(1)
        watched.tick(1.0879, 1.0880, NOON_MS + 31_000)
        await watched.settle()

    run(act)
    signal = Signal.objects.get()
    assert (signal.rules, signal.pnl_r) == (rules, earned)


def test_owner_of_an_ingest_key_does_not_publish_and_then_push_the_price_to_the_target(
    instrument: Instrument,
) -> None:
    anna = make_account(make_publisher()).user
    _, secret = issue_ingest_key("desk", "EURUSD", by="test", account=anna.account)
    terms = SignalTerms("EURUSD", "buy", Decimal("1.0830"), Decimal("1.0940"))

    def buy() -> str:
        try:
            publish(terms, anna, current_quote("EURUSD"))
        except SignalRefused as refused:
            return refused.code
        return ""

    async def act(watched: WatchedEngine) -> str:
        watched.tick(1.0840, 1.0841, NOON_MS)
        code = await in_thread(buy)
        await watched.settle()
        source = await ingest_key_cache.ask(secret, ingest_key_cache.digest(secret))
        assert source is not None
        for number in range(1, 6):
            tick = Tick("EURUSD", 1.0840 + number * 0.0020, 1.0841 + number * 0.0020, NOON_MS + number)
            assert watched.engine.take(source.origin, [tick], tick.time_ms, source.public_id) == [None]
            watched.runner.publish()
        await watched.settle()
        return code

    assert run(act) == "own_price"
    assert not Signal.objects.exists()
