"""Signals of the demo's publishers, closed by the minutes of its market as the service closes them after an
outage."""

import random
from collections.abc import Callable, Iterator
from datetime import datetime
from decimal import Decimal
from functools import partial
from itertools import cycle, islice
from operator import itemgetter
from typing import NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet

from accounts.models import User
from core.times import MINUTE_MS, epoch_ms, moment
from instruments.facts import TEST_SYMBOL, InstrumentFacts
from instruments.models import Instrument
from market.prices import TIMEFRAMES, PriceBar, interval_start
from market.store import read_minutes_since
from signals_feed.closing import Closing, close_signal
from signals_feed.exits import SignalLevels, by_minute, exit_price
from signals_feed.models import LIFETIME, Signal, SignalQuerySet
from signals_feed.publishing import enter_feed
from signals_feed.rules import Quoted, SeenExtremes, StoredMinute

from .market import priced_by_demo, simulated_since
from .people import PUBLISHERS, hold_demo
from .progress import Progress

PAST_SIGNALS, ACTIVE_SIGNALS = 110, 12
# Of eleven signals, in the order of the publishers' names: two of them have enough to be ranked.
SHARES = (4, 4, 2, 1)
MOST_MINUTES = 8 * 24 * 60


class Planned(NamedTuple):
    """A signal with the quote it is published at, and how it ends if it does."""

    signal: Signal
    quote: Quoted
    closing: Closing | None


def seed_signals(now_ms: int, progress: Progress) -> None:
    """Makes the whole feed the first time, and later only active signals if too few are left."""
    signals = _own_signals()
    known = signals.count()
    planned: list[Planned] = []
    if not known:
        progress("Publishing signals")
        planned += _plan(now_ms, settings.DEMO_SEED, PAST_SIGNALS, are_closed=True)
    missing = ACTIVE_SIGNALS - signals.active().count()
    if missing > 0:
        seed = settings.DEMO_SEED + known + len(planned)
        planned += _plan(now_ms, seed, missing, are_closed=False)
    with transaction.atomic():
        # Another process may have planned the same.
        if hold_demo() and signals.count() == known:
            _carry_out(planned)


def lacks_signals() -> bool:
    return _own_signals().active().count() < ACTIVE_SIGNALS


def _own_signals() -> SignalQuerySet:
    return Signal.objects.filter(user__in=_publishers())


def _publishers() -> QuerySet[User]:
    """Leaves out real people who happen to have such a name."""
    return User.objects.filter(username__in=PUBLISHERS, account__is_demo=True)


def _carry_out(planned: list[Planned]) -> None:
    """Ordered by time, as the ledger is."""
    acts: list[tuple[datetime, Callable[[], object]]] = []
    for signal, quote, closing in planned:
        acts.append((signal.published_at, partial(enter_feed, signal, quote)))
        if closing is not None:
            acts.append((moment(closing.at_ms), partial(close_signal, closing)))
    for _, act in sorted(acts, key=itemgetter(0)):
        act()


def _plan(now_ms: int, seed: int, wanted: int, *, are_closed: bool) -> list[Planned]:
    dice = random.Random(seed)  # noqa: S311 - the demo's dice guard nothing
    shares = zip(_publishers().order_by("username"), SHARES, strict=False)
    publishers = cycle([publisher for publisher, share in shares for _ in range(share)])
    instruments = Instrument.objects.in_bulk()
    # Old enough to have been closed, or young enough to be open still.
    youngest, oldest = (600, MOST_MINUTES) if are_closed else (1, 2_000)
    made: list[Planned] = []
    # Nobody has an opinion on the test instrument, and nobody of the demo on a real price.
    since_ms = simulated_since()
    offered = [facts for facts in priced_by_demo() if facts.symbol != TEST_SYMBOL and facts.id in since_ms]
    for facts in islice(cycle(offered), 20 * wanted):
        start_ms = now_ms - dice.randrange(youngest, oldest) * MINUTE_MS
        if start_ms < since_ms[facts.id]:
            continue
        path = _stored_minutes(facts, start_ms, interval_start(now_ms, MINUTE_MS))
        start = next(path, None)
        found = None if start is None else _planned(facts, start, path, dice)
        if found is not None and (found.closing is not None) == are_closed:
            found.signal.user = next(publishers)
            found.signal.instrument = instruments[facts.id]
            made.append(found)
        if len(made) == wanted:
            break
    return made


def _stored_minutes(facts: InstrumentFacts, start_ms: int, end_ms: int) -> Iterator[PriceBar]:
    """Read a day at a time, because most signals end early."""
    start_ms = -(-start_ms // MINUTE_MS) * MINUTE_MS
    for begin_ms in range(start_ms, end_ms, TIMEFRAMES["1d"]):
        yield from read_minutes_since(
            facts, begin_ms, simulated=True, before_ms=min(end_ms, begin_ms + TIMEFRAMES["1d"])
        )


def _planned(
    facts: InstrumentFacts, start: PriceBar, path: Iterator[PriceBar], dice: random.Random
) -> Planned:
    """A signal published at the close of a minute, with levels that the volatility suggests."""
    direction = dice.choice(("buy", "sell"))
    sign = 1 if direction == "buy" else -1
    bid, ask = start.close, start.ask_low + start.close - start.low
    tradable = ask if direction == "buy" else bid
    risk = max(30 * (start.high - start.low), tradable * 0.002) * dice.uniform(0.7, 1.6)
    price = partial(_rounded, digits=facts.digits)
    at_ms = start.opened_ms + MINUTE_MS
    signal = Signal(
        instrument_id=facts.id,
        direction=direction,
        entry=price(tradable),
        tradable_price=price(tradable),
        stop_loss=price(tradable - sign * risk),
        take_profit=price(tradable + sign * risk * dice.uniform(1.0, 2.5)),
        published_at=moment(at_ms),
        expires_at=moment(at_ms) + LIFETIME,
    )
    quote = Quoted(price(bid), price(ask), at_ms)
    return Planned(signal, quote, _first_closing(signal, quote, path, facts.digits))


def _first_closing(signal: Signal, quote: Quoted, path: Iterator[PriceBar], digits: int) -> Closing | None:
    """None for a signal that is still open where the path ends."""
    ends_ms = epoch_ms(signal.expires_at)
    levels = SignalLevels(signal.direction, signal.stop_loss, signal.take_profit, quote.time_ms, ends_ms)
    first = exit_price(signal.direction, quote.bid, quote.ask)
    highest = lowest = float(first)
    # Between these nothing ends before its time: only the others are looked at as exactly as the rules do.
    point = 10.0**-digits
    below, above = sorted((float(signal.stop_loss), float(signal.take_profit)))
    below, above = below + point, above - point
    for candle in path:
        low, high = (candle.low, candle.high) if levels.is_buy else (candle.ask_low, candle.ask_high)
        if low <= below or high >= above or candle.opened_ms + MINUTE_MS >= ends_ms:
            kept = candle.open, candle.low, candle.high, candle.ask_low, candle.ask_high
            minute = StoredMinute(candle.opened_ms, *(_rounded(price, digits) for price in kept))
            if exit_ := by_minute(levels, minute):
                seen = SeenExtremes(_rounded(highest, digits), _rounded(lowest, digits), 0)
                closing = Closing.by_candle(signal.pk, exit_, minute, seen)
                return closing._replace(at_ms=candle.opened_ms + MINUTE_MS // 2)
        highest, lowest = max(highest, high), min(lowest, low)
    return None


def _rounded(price: float, digits: int) -> Decimal:
    return Decimal(f"{price:.{digits}f}")
