"""What a starting process takes from the store: candles, forming candles, last quotes."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from django.db import connection, transaction

from instruments.catalogue import InstrumentFacts, catalogue
from market.clock import now_ms
from market.models import EngineState
from market.prices.history import History
from market.prices.market import Prices
from market.prices.timeframes import MINUTE_MS, TIMEFRAMES, interval_start

from . import checkpoints, store
from .checkpoints import Checkpoint
from .lease import Place
from .series import wanted_kind

DAY_MS = TIMEFRAMES["1d"]


class Loaded(NamedTuple):
    checkpoints: dict[str, Checkpoint]
    place: Place
    """What the database holds is everything up to here."""


@transaction.atomic
def load(prices: Prices, default_feed: str | None = None) -> Loaded:
    """Fill the memory of a process from the database, as it is at one moment: of each instrument the series
    that was going on."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    state = EngineState.objects.first() or EngineState()
    by_id = checkpoints.read_checkpoints()
    known: dict[str, Checkpoint] = {}
    for facts in catalogue.all():
        history, checkpoint = prices.history(facts), by_id.get(facts.id)
        if checkpoint is None:
            load_history(history, facts, simulated=wanted_kind(facts, default_feed))
            continue
        known[facts.symbol] = checkpoint
        load_history(history, facts, simulated=checkpoint.simulated)
        go_on(history, checkpoint, facts, prices)
        if checkpoint.last is not None:
            prices.board.put(checkpoint.last, facts.digits, checkpoint.seq)
    return Loaded(known, Place(state.epoch, state.position))


def go_on(history: History, checkpoint: Checkpoint, facts: InstrumentFacts, prices: Prices) -> None:
    tick = checkpoint.last
    if tick is not None:
        history.builder.resume_forming(checkpoint.minute, prices.price_of(tick, facts), tick.ask)


def load_history(
    history: History, facts: InstrumentFacts, *, simulated: bool, before_ms: int | None = None
) -> None:
    """The series of one kind, or what of it opened before a moment."""
    history.simulated = simulated
    for timeframe in TIMEFRAMES:
        for candle in store.read_candles(facts, timeframe, simulated=simulated, before_ms=before_ms):
            history.restore(timeframe, candle)
    # Not today's: what formed when the service ended may be of Friday, and is closed now.
    last_ms = history.last_closed_ms("1m")
    if last_ms is not None:
        first_ms = min(interval_start(last_ms, DAY_MS), last_ms - DAY_MS)
        minutes = store.read_minutes_since(facts, first_ms, simulated=simulated)
        at_ms = max(now_ms() if before_ms is None else before_ms, last_ms + MINUTE_MS)
        closed = (minute for minute in minutes if minute.opened_ms <= last_ms)
        history.resume(closed, at_ms, _over_ms(facts, at_ms))


def _over_ms(facts: InstrumentFacts, at_ms: int) -> float:
    """What ends by then has nothing more to come."""
    if facts.hours.is_open(at_ms):
        return at_ms
    reopens_ms = facts.hours.next_open(at_ms)
    return inf if reopens_ms is None else reopens_ms
