"""The one place that closes signals: the first to find the row active closes it, at prices of stored minutes
if no tick is left."""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Collection
from contextlib import suppress
from decimal import Decimal
from itertools import islice
from typing import Any, NamedTuple
from uuid import UUID

import msgspec
from django.conf import settings
from django.db import DataError, IntegrityError, transaction
from django.db.models import Max, Min, Q, QuerySet

from core.background import BackgroundLoop
from core.database import TRANSIENT
from core.fault_log import LastingFault
from core.threads import in_thread
from core.times import MINUTE_MS, epoch_ms_after, moment
from instruments.catalogue import catalogue
from instruments.facts import IMPORTED
from market.models import Candle, FormingMinute
from market.store import LeaseLost, present_kind
from signals_feed import exits
from signals_feed.decisions import (
    WITHHELD_UNFILLED,
    Decision,
    announce,
    close_fact,
    note_decisions,
    write_decisions,
)
from signals_feed.exits import Exit, exit_price, in_r, result
from signals_feed.ledger.ledger import RESULT
from signals_feed.models import Evidence, Hit, Signal
from signals_feed.rules import Quoted, SeenExtremes, StoredMinute

# Stored minutes, which judge a signal whose ticks were not watched.
PRICES = ("open", "low", "high", "ask_low", "ask_high")


def quoted_minutes(instrument_id: int, until_ms: int) -> QuerySet[Candle]:
    """Minutes over by then, except those of trade prices and from files, which were never quoted, and those
    of which something was missed."""
    own = Candle.objects.filter(
        instrument=instrument_id, simulated=present_kind(instrument_id), timeframe="1m"
    )
    return own.filter(opened_at__lte=moment(until_ms - MINUTE_MS)).exclude(
        Q(basis=Candle.Basis.TRADES) | Q(source=IMPORTED) | Q(partial=True)
    )


def read_minutes(instrument_id: int, since_ms: int, until_ms: int) -> list[StoredMinute]:
    if since_ms + MINUTE_MS > until_ms:
        return []
    minutes = quoted_minutes(instrument_id, until_ms).filter(opened_at__gte=moment(since_ms))
    rows = minutes.order_by("opened_at").values_list("basis", "opened_at", *PRICES)
    return [minute_of(basis, epoch_ms_after(at), *prices) for basis, at, *prices in rows]


def minute_of(basis: str, opened_ms: int, *prices: object) -> StoredMinute:
    minute = StoredMinute(opened_ms, *prices)  # type: ignore[arg-type]
    if basis == Candle.Basis.MID:
        return minute._replace(bid_open=None, bid_low=None, bid_high=None)
    return minute


def prices_known(signal: Signal, until_ms: int) -> list[Decimal]:
    """Prices of the exit side since the publication, extremes among them, as far as they were kept."""
    entry = signal.entry_quote()
    prices = [] if entry is None else [exit_price(signal.direction, entry.bid, entry.ask)]
    is_buy = signal.direction == "buy"
    # Candles of mid prices say nothing about the bid.
    if is_buy and settings.CANDLE_PRICE == "mid":
        return prices
    low, high = ("low", "high") if is_buy else ("ask_low", "ask_high")
    own = Q(instrument=signal.instrument_id, opened_at__gte=signal.published_at)
    found = quoted_minutes(signal.instrument_id, until_ms).filter(own).aggregate(low=Min(low), high=Max(high))
    forming = FormingMinute.objects.filter(own, opened_at__lte=moment(until_ms)).values_list(low, high)
    known = [*found.values(), *(forming.first() or ())]
    return prices + [price for price in known if price is not None]


logger = logging.getLogger(__name__)
closing_waits = LastingFault(logger, "Signals that were hit wait to be closed")


class Closing(NamedTuple):
    """How a signal ends, with its evidence, in plain values that can wait in the database."""

    signal: UUID
    price: Decimal
    reason: str
    at_ms: int
    rule: str
    source: str
    shown: dict[str, Any]
    """The tick or the minute, keyed by the evidence's columns."""
    seen: SeenExtremes | None = None
    """How far the price went while the signal was watched."""

    @classmethod
    def at_current(cls, signal: Signal, reason: str, quote: Quoted, at_ms: int) -> Closing:
        price = exit_price(signal.direction, quote.bid, quote.ask)
        return cls(signal.pk, price, reason, at_ms, exits.CURRENT, Evidence.Source.TICK, quote.shown)

    @classmethod
    def by_candle(cls, signal: UUID, exit_: Exit, minute: StoredMinute, seen: SeenExtremes | None) -> Closing:
        at_ms, source = minute.opened_ms + MINUTE_MS - 1, Evidence.Source.CANDLE
        return cls(signal, exit_.price, exit_.reason, at_ms, exit_.rule, source, minute.shown, seen)


def close_signal(closing: Closing) -> bool:
    """False if it was closed before."""
    return bool(close_signals([closing]))


@transaction.atomic
def close_signals(closings: Collection[Closing]) -> set[UUID]:
    """Returns the ids of the signals it closed."""
    wanted = {closing.signal: closing for closing in closings}
    active = Signal.objects.active()
    signals = active.select_related("instrument", "user").in_bulk(list(wanted))
    closed: dict[UUID, Evidence] = {}
    # All rows before the first event, and always in the same order: a writer that waits for a row then
    # holds nothing that the row's owner waits for.
    for pk in sorted(signals):
        exit_ = _exit_of(signals[pk], wanted[pk])
        values = {name: getattr(signals[pk], name) for name in ("status", *RESULT)}
        if active.filter(pk=pk).update(**values):
            closed[pk] = exit_
    if closed:
        announce(
            [exit_.signal for exit_ in closed.values()],
            closed.values(),
            [close_fact(exit_.signal, exit_) for exit_ in closed.values()],
        )
    return set(closed)


Ending = Closing | Decision


@transaction.atomic
def close_or_hold_back(
    endings: Collection[Ending], hold: Callable[[], None]
) -> tuple[set[UUID], dict[UUID, str]]:
    """Returns the IDs of the signals of which nothing is written because the prices must not be passed on
    now, and the outcomes of decisions. `hold` raises if another engine has taken over."""
    hold()
    held = _held_back([each.signal for each in endings if isinstance(each, Closing) or each.has_prices])
    waiting = [each for each in endings if each.signal in held]
    # A publisher who could wait until the prices may be passed on would choose among fills.
    unfilled = {each.signal for each in waiting if isinstance(each, Decision) and each.fill}
    note([each for each in waiting if each.signal not in unfilled])
    outcomes = write_endings([each for each in endings if each.signal not in held])
    return held - unfilled, outcomes | dict.fromkeys(unfilled, WITHHELD_UNFILLED)


def write_endings(endings: Collection[Ending]) -> dict[UUID, str]:
    """What became of decisions."""
    close_signals([each for each in endings if isinstance(each, Closing)])
    return write_decisions([each for each in endings if isinstance(each, Decision)])


def note(endings: Collection[Ending]) -> None:
    note_hits([each for each in endings if isinstance(each, Closing)])
    note_decisions([each for each in endings if isinstance(each, Decision)])


def _held_back(signals: Collection[UUID]) -> set[UUID]:
    withheld = [facts.id for facts in catalogue.all() if facts.is_withheld]
    if not withheld:
        return set()
    found = Signal.objects.active().filter(pk__in=signals, instrument__in=withheld)
    return set(found.values_list("pk", flat=True))


def note_hits(closings: Collection[Closing]) -> None:
    """The first closing of a signal counts."""
    # Two who note the same at once would else wait for each other.
    ordered = sorted(closings, key=lambda closing: closing.signal)
    noted = [Hit(signal_id=each.signal, closing=msgspec.to_builtins(each, str_keys=True)) for each in ordered]
    Hit.objects.bulk_create(noted, ignore_conflicts=True)


def _exit_of(signal: Signal, closing: Closing) -> Evidence:
    """Set the signal's result and return its evidence."""
    terms = signal.direction, signal.entry, signal.stop_loss, signal.tradable_price
    best, worst = best_and_worst(signal, closing)
    signal.status = Signal.Status.CLOSED
    signal.close_price, signal.close_reason = closing.price, closing.reason
    # A venue's clock may be behind ours.
    signal.closed_at = max(moment(closing.at_ms), signal.published_at)
    signal.pnl, signal.pnl_percent, signal.pnl_r = result(*terms, closing.price, signal.instrument.pip_size)
    signal.best_r, signal.worst_r = in_r(*terms, best), in_r(*terms, worst)
    columns = {field.name: field for field in Evidence._meta.concrete_fields}
    # A closing that waited in the database has its values as text.
    shown = {name: columns[name].to_python(value) for name, value in closing.shown.items()}
    return Evidence(
        signal=signal,
        kind=Evidence.Kind.EXIT,
        source=closing.source,
        rule=closing.rule,
        best=best,
        worst=worst,
        **shown,
    )


def best_and_worst(signal: Signal, closing: Closing) -> tuple[Decimal, Decimal]:
    """The extremes of the exit side, completed by the stored minutes for the time without a watcher."""
    seen, prices = closing.seen, [closing.price]
    if seen is not None:
        prices += [seen.high, seen.low]
    if seen is None or seen.since_ms:
        prices += prices_known(signal, closing.at_ms if seen is None else seen.since_ms)
    high, low = max(prices), min(prices)
    # The signal ends at its target: the publisher got none of what the tick showed beyond it.
    if signal.direction == "buy":
        return min(high, signal.take_profit), low
    return max(low, signal.take_profit), high


# Other writers of events wait for this transaction.
MOST_AT_ONCE = 50
RETRY_S = 0.25

# A clean end gives up after this; what still waits is then written with the engine's state.
LAST_S = 2.0
IMPOSSIBLE = (IntegrityError, DataError, ArithmeticError)


class Closer:
    def __init__(
        self, hold: Callable[[], None], on_outcome: Callable[[Decision, str], None] = lambda *_: None
    ) -> None:
        self._hold, self._on_outcome = hold, on_outcome
        self.pending: dict[UUID, Ending] = {}
        self.refused: dict[UUID, Ending] = {}
        """Those that the database refuses."""
        self.held: dict[UUID, Ending] = {}
        """Those whose prices must not be passed on; the database has them as hits."""
        self._tried: deque[Decision] = deque(maxlen=MOST_AT_ONCE)
        """Refused once."""
        self._permissions = 0
        """How often the sources that may be passed on have changed."""
        self._wake = asyncio.Event()
        self._working = asyncio.Lock()
        self.loop = BackgroundLoop(
            "signal closer",
            self._work,
            fault=closing_waits,
            broke="Signals could not be closed, trying again",
            before=self._wake.wait,
            again=RETRY_S,
        )

    def add(self, ending: Ending) -> None:
        """The first closing of a signal counts; decisions follow one another."""
        signal = ending.signal
        if signal in self.refused:
            return
        if isinstance(ending, Decision):
            earlier = self.held.pop(signal, None) or self.pending.get(signal)
            self.pending[signal] = earlier.and_then(ending) if isinstance(earlier, Decision) else ending
        elif signal not in self.held:
            self.pending.setdefault(signal, ending)
        self._wake.set()

    def forget(self, signal: UUID) -> None:
        self.pending.pop(signal, None)
        self.refused.pop(signal, None)
        self.held.pop(signal, None)

    def try_again(self) -> None:
        """More sources may be passed on than before."""
        self._permissions += 1
        held, self.held = self.held, {}
        for ending in held.values():
            self.add(ending)

    def waiting(self) -> list[Ending]:
        """Those that are not in the database yet."""
        return [*self.pending.values(), *self.refused.values()]

    async def end(self) -> None:
        with suppress(TimeoutError, LeaseLost, *TRANSIENT):
            async with asyncio.timeout(LAST_S):
                await self.work_off()
        if self.pending:
            logger.warning("%d signals are closed when an engine starts again", len(self.pending))
        await self.loop.stop()

    async def work_off(self) -> None:
        async with self._working:
            while self.pending:
                await self._close(list(islice(self.pending.values(), MOST_AT_ONCE)))

    async def _work(self) -> None:
        try:
            await self.work_off()
        except LeaseLost:
            await asyncio.sleep(RETRY_S)
        else:
            self._wake.clear()

    async def _close(self, some: list[Ending]) -> None:
        permissions, held, outcomes = self._permissions, set[UUID](), dict[UUID, str]()
        try:
            held, outcomes = await in_thread(close_or_hold_back, some, self._hold)
        except IMPOSSIBLE:
            if len(some) > 1:
                for ending in some:
                    await self._close([ending])
                return
            if isinstance(some[0], Decision) and some[0] not in self._tried:
                # What the ledger takes depends on the time, which has passed since that was looked at.
                self._tried.append(some[0])
                return
            logger.exception("Signal %s cannot be closed; the others are", some[0].signal)
            self.refused[some[0].signal] = some[0]
        if held and permissions != self._permissions:
            # They are tried once more with the others that were held.
            some = [ending for ending in some if ending.signal not in held]
        for ending in some:
            # Nothing more was decided about it in the meantime.
            is_all = self.pending.get(ending.signal) is ending
            if is_all or isinstance(ending, Closing):
                is_all = self.pending.pop(ending.signal, None) is not None
            # If it is not held back it is written now, here or by a process that came first.
            if is_all and ending.signal in held:
                self.held[ending.signal] = ending
            elif isinstance(ending, Decision) and (outcome := outcomes.get(ending.signal)):
                self._on_outcome(ending, outcome)
