"""Signals of the demo publishers, judged by the demo market itself."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from datetime import timedelta
from decimal import Decimal
from itertools import cycle, islice

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from accounts.models import User
from instruments.catalogue import InstrumentFacts, catalogue
from market.engine import store
from market.prices.candles import Candle
from market.prices.timeframes import MINUTE_MS, interval_start
from signals_feed.closing import result
from signals_feed.models import LIFETIME, Signal

from .candles import simulated_minutes
from .instruments import TEST
from .people import PUBLISHERS

PAST_SIGNALS, ACTIVE_SIGNALS = 60, 12
MOST_MINUTES = 13 * 24 * 60


def seed_signals(now_ms: int, progress: Callable[[str], None]) -> None:
    """Once the whole feed; later only new active ones, when too few are left."""
    signals = Signal.objects.filter(user__in=_publishers())
    missing = ACTIVE_SIGNALS - signals.active().count()
    if not signals.exists():
        progress("Publishing signals")
        _publish(now_ms, settings.DEMO_SEED, PAST_SIGNALS, wanted_status="closed")
    if missing > 0:
        _publish(now_ms, settings.DEMO_SEED + signals.count(), missing, wanted_status="active")


def _publishers() -> QuerySet[User]:
    """Not a person who happens to have such a name."""
    return User.objects.filter(username__in=PUBLISHERS, account__is_demo=True)


@transaction.atomic
def _publish(now_ms: int, seed: int, wanted: int, wanted_status: str) -> None:
    dice = random.Random(seed)  # noqa: S311 - the demo's dice guard nothing
    publishers = cycle(_publishers().order_by("username"))
    # Old enough to have been decided, or young enough to be open still.
    youngest, oldest = (600, MOST_MINUTES) if wanted_status == "closed" else (1, 2_000)
    made: list[Signal] = []
    # Nobody has an opinion on the test instrument.
    offered = [facts for facts in catalogue.active() if facts.symbol != TEST]
    for facts in islice(cycle(offered), 20 * wanted):
        start_ms = now_ms - dice.randrange(youngest, oldest) * MINUTE_MS
        path = simulated_minutes(facts, start_ms, interval_start(now_ms, MINUTE_MS))
        start = next(path, None)
        signal = None if start is None else _signal(facts, start, path, dice)
        if signal is not None and signal.status == wanted_status:
            signal.user = next(publishers)
            made.append(signal)
        if len(made) == wanted:
            break
    Signal.objects.bulk_create(made)


def _signal(facts: InstrumentFacts, start: Candle, path: Iterator[Candle], dice: random.Random) -> Signal:
    """A signal published at the close of a minute, with levels that its volatility suggests."""
    digits = facts.digits
    direction = dice.choice(("buy", "sell"))
    sign = 1 if direction == "buy" else -1
    tradable = start.ask_low + start.close - start.low if direction == "buy" else start.close
    risk = max(30 * (start.high - start.low), tradable * 0.002) * dice.uniform(0.7, 1.6)
    entry = Decimal(f"{tradable:.{digits}f}")
    return _judged(
        Signal(
            instrument_id=facts.id,
            direction=direction,
            entry=entry,
            tradable_price=entry,
            stop_loss=Decimal(f"{tradable - sign * risk:.{digits}f}"),
            take_profit=Decimal(f"{tradable + sign * risk * dice.uniform(1.0, 2.5):.{digits}f}"),
            published_at=store.moment(start.opened_ms + MINUTE_MS),
            expires_at=store.moment(start.opened_ms + MINUTE_MS) + LIFETIME,
        ),
        facts,
        path,
    )


def _judged(signal: Signal, facts: InstrumentFacts, path: Iterator[Candle]) -> Signal:
    is_buy = signal.direction == "buy"
    stop, target = float(signal.stop_loss), float(signal.take_profit)
    for candle in path:
        opens_at = candle.open if is_buy else candle.open + candle.ask_low - candle.low
        if store.moment(candle.opened_ms) >= signal.expires_at:
            return _closed(signal, facts, opens_at, candle, Signal.CloseReason.EXPIRED)
        # If one candle spans both levels, the stop wins.
        if candle.low <= stop if is_buy else candle.ask_high >= stop:
            gap = min(stop, opens_at) if is_buy else max(stop, opens_at)
            return _closed(signal, facts, gap, candle, Signal.CloseReason.STOP_LOSS)
        if candle.high >= target if is_buy else candle.ask_low <= target:
            return _closed(signal, facts, target, candle, Signal.CloseReason.TAKE_PROFIT)
    return signal


def _closed(signal: Signal, facts: InstrumentFacts, price: float, candle: Candle, reason: str) -> Signal:
    close_price = Decimal(f"{price:.{facts.digits}f}")
    outcome = result(
        signal.direction,
        signal.entry,
        signal.stop_loss,
        signal.tradable_price,
        close_price,
        Decimal(str(facts.pip_size)),
    )
    signal.status = Signal.Status.CLOSED
    signal.close_price, signal.close_reason = close_price, reason
    signal.closed_at = max(store.moment(candle.opened_ms) + timedelta(seconds=30), signal.published_at)
    signal.pnl, signal.pnl_percent, signal.pnl_r = outcome
    return signal
