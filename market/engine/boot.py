"""What a starting process takes from the store: candles, forming candles, last quotes."""

from __future__ import annotations

from typing import NamedTuple

from django.db import connection, transaction

from instruments.catalogue import InstrumentFacts, catalogue
from market.models import EngineState
from market.prices.history import History
from market.prices.market import Prices
from market.prices.timeframes import TIMEFRAMES, interval_start

from . import checkpoints, store
from .checkpoints import Checkpoint
from .lease import Place

DAY_MS = TIMEFRAMES["1d"]


class Loaded(NamedTuple):
    checkpoints: dict[str, Checkpoint]
    place: Place
    """What the database holds is everything up to here."""


@transaction.atomic
def load(prices: Prices) -> Loaded:
    """Fill the memory of a process from the database, as it is at one moment."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    state = EngineState.objects.first() or EngineState()
    by_id = checkpoints.read_checkpoints()
    known: dict[str, Checkpoint] = {}
    for facts in catalogue.all():
        history = prices.history(facts)
        load_history(history, facts)
        if checkpoint := by_id.get(facts.id):
            tick = checkpoint.last
            known[facts.symbol] = checkpoint
            prices.board.put(tick, facts.digits, checkpoint.seq)
            history.builder.resume_forming(checkpoint.minute, prices.price_of(tick, facts), tick.ask)
    return Loaded(known, Place(state.epoch, state.position))


def load_history(history: History, facts: InstrumentFacts) -> None:
    for timeframe in TIMEFRAMES:
        for candle in store.read_candles(facts, timeframe):
            history.restore(timeframe, candle)
    # Not today's: what formed when the service ended may be of Friday, and is closed now.
    last_ms = history.last_closed_ms("1m")
    if last_ms is not None:
        first_ms = min(interval_start(last_ms, DAY_MS), last_ms - DAY_MS)
        history.resume(store.read_minutes_since(facts, first_ms))
