"""The engine: ticks come in, are checked, numbered, folded into prices and order flow, and published."""

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import cast

import msgspec
from django.conf import settings

from core.times import MINUTE_MS
from instruments.catalogue import catalogue
from instruments.facts import PUSH, InstrumentFacts, feeds_of, is_simulated
from market.prices.candles import Closed, PriceBar, interval_start
from market.prices.history import History, row_of
from market.prices.quotes import Prices
from market.prices.records import (
    AbsorptionFound,
    AnyRecord,
    CandlesEnded,
    ClosingRecord,
    EmptyMinute,
    HistoryMinute,
    MarketClosed,
    StandingQuote,
    Tick,
    TickAccepted,
    closed_by,
)
from market.store.candle_rows import CandleToWrite
from market.store.checkpoints import Checkpoint, FlowToWrite

from .admission import FeedChoice, FeedState, is_of
from .feeds.feed import Unheard
from .instrument_state import TRADES, InstrumentState
from .listeners import FillTerms

CLOSE_GRACE_MS = 2_000
NEVER_MS = 1 << 52
NO_FEED = FeedState()

# The reason why nothing is admitted while it could not be published.
NO_ROOM = "no_room"

# With more instruments than these, each is looked at by every fourth look at the clock: once a second.
MOST_AT_A_LOOK, TURNS = 100, 4


# Of a longer silence the minutes come from the venue's history, and its trades not one by one.
HEALED_MS = 180_000


def bar_of(trades: Sequence[Tick], facts: InstrumentFacts, source: str) -> PriceBar:
    prices = [trade.price or trade.bid for trade in trades]
    high, low = max(prices), min(prices)
    volume = float(len(trades)) if facts.volume_kind == "ticks" else sum(trade.volume for trade in trades)
    opened_ms = interval_start(trades[0].time_ms, MINUTE_MS)
    return PriceBar(opened_ms, prices[0], high, low, prices[-1], round(volume, 8), high, low, source)


class Engine:
    """All that happens to the prices of this process. It waits for nothing and asks no clock."""

    def __init__(
        self,
        prices: Prices,
        default_feed: str = PUSH,
        grace_ms: int = CLOSE_GRACE_MS,
        fill_after_ms: int | None = None,
    ) -> None:
        self.prices = prices
        self.fill_after_ms = settings.FILL_AFTER_MS if fill_after_ms is None else fill_after_ms
        """How long a fill waits at least."""
        self.grace_ms = grace_ms
        """How long after the end of a minute its ticks may come."""
        self.default_feed = default_feed
        """The feed of an instrument that names no source."""
        self.feed_states: dict[str, FeedState] = {}
        self.instruments: dict[str, InstrumentState] = {}
        self.rows: list[CandleToWrite] = []
        """Closed candles that are not written yet."""
        self.minute_flows: list[FlowToWrite] = []
        """The order flow of closed minutes, likewise."""
        self.changed: dict[str, InstrumentState] = {}
        """Instruments that took a tick since the last checkpoint."""
        self.records: list[AnyRecord] = []
        """Decided and not yet published."""
        self.unsettled: set[str] = set()
        """The symbols whose prices are not settled."""
        self.must_tell = False
        """One of them joined only now, and that is not announced yet."""
        self.has_room: Callable[[], bool] = lambda: True
        """Whether what is admitted can be published."""
        self._looked_ms, self._turn = -1, 0
        self._due: list[str] = []
        """The symbols that this look at the clock has not come to yet."""
        self._lag_minute: int | None = None

    def take(self, origin: str, batch: Sequence[Tick], at_ms: int, key: str = "") -> list[str | None]:
        """What a feed sent, with the key it came with: for each tick why it was refused. An empty batch is a
        sign of life."""
        feed_state = self.feed_state(origin)
        if batch and not self.has_room():
            self.refuse(origin, batch, at_ms, "the bus is full")
            return [NO_ROOM] * len(batch)
        feed_state.heard(at_ms)
        feed_state.key = key
        return [self.accept(tick, at_ms, origin) for tick in batch]

    def refuse(self, origin: str, batch: Sequence[Tick], at_ms: int, why: str) -> None:
        """Minutes of which ticks are refused are no flat ones, nor whole."""
        feed_state = self.feed_state(origin)
        feed_state.lost(at_ms, why)
        feed_state.refused[NO_ROOM] += len(batch)
        for tick in batch:
            self._miss(tick, origin, at_ms, at_ms - feed_state.ahead_ms)

    def accept(self, tick: Tick, at_ms: int, origin: str = "") -> str | None:
        """Take a tick, or say why not; the last good value stays then."""
        origin = origin or self.default_feed
        feed_state = self.feed_state(origin)
        facts = catalogue.find(tick.symbol)
        if facts is None:
            feed_state.refused["unknown_symbol"] += 1
            return "unknown_symbol"
        state = self.instruments.get(tick.symbol)
        if state is None or state.facts is not facts:
            state = self.instrument(facts, at_ms)
        history = self.prices.histories.get(tick.symbol) or self.prices.history(facts)
        own_ms = at_ms - feed_state.ahead_ms
        reason = state.reason_to_refuse(tick, origin, at_ms, history, self.feed_states)
        if reason is not None:
            state.note_refused(tick, reason, origin, own_ms)
            feed_state.refused[reason] += 1
            self.note_unsettled(state)
            return reason
        if self.unsettled and state.outliers.settling.is_settled:
            self.unsettled.discard(tick.symbol)
        if tick.time_ms >= state.minute_ends_ms:
            self._end_windows(state, tick.time_ms)
            self._pass_time(state, tick.time_ms)
        if state.switches != state.choice.switches:
            state.choose(state.choice)
        state.unsure_ms = None
        feed_state.ticks += 1
        self._note_lag(state, feed_state, tick, own_ms)
        # What forms now is closed by the clock with its market, though that was closed when it came.
        state.is_open = True
        records = state.number(tick, origin, at_ms, feed_state)
        self.changed[tick.symbol] = state
        self.records += records
        if closed := self.prices.apply(records[-1], facts):
            self._number(state, closed, cast(TickAccepted, records[-1]))
            self._keep(state, closed, records[-1])
        if state.broken:
            state.holed |= state.broken
            self._mark_partial(state)
        return None

    def _miss(self, tick: Tick, origin: str, at_ms: int, own_ms: int) -> None:
        facts = catalogue.find(tick.symbol)
        if facts is not None and (state := self.instrument(facts, at_ms)).choice.serves(origin):
            self._leave_hole(state, interval_start(min(tick.time_ms, own_ms), MINUTE_MS), own_ms)

    def _leave_hole(self, state: InstrumentState, minute_ms: int, own_ms: int) -> None:
        self._break(state, {minute_ms}, own_ms)
        state.holed |= state.broken & {minute_ms}

    def _miss_pushes(self, at_ms: int) -> None:
        """A full Redis takes none, so that none comes here to be refused."""
        for name, feed_state in self.feed_states.items():
            if is_of(name, PUSH):
                feed_state.lost(at_ms, "the bus is full")
        minute_ms = interval_start(at_ms, MINUTE_MS)
        for state in self.instruments.values():
            if is_of(state.source, PUSH):
                self._leave_hole(state, minute_ms, at_ms)

    def keep_time(self, at_ms: int, late_ms: int = 0, most: int | None = None) -> bool:
        """Close what has ended, even if no later tick came. What came in the last `late_ms` may be unread.
        Checks at most `most` instruments, and returns whether others are still due."""
        grace_ms = self.grace_ms + late_ms
        if not self._due:
            if not self.has_room():
                self._miss_pushes(at_ms)
            self._turn_lags(at_ms // MINUTE_MS)
            self._settle(at_ms - late_ms)
            self._due = self._due_at(at_ms - grace_ms)
        part = self._due[:most]
        del self._due[:most]
        for facts in filter(None, map(catalogue.known, part)):
            state = self.instrument(facts, at_ms)
            feed_state = self.feed_states.get(state.origin or state.source, NO_FEED)
            until_ms = feed_state.ended_ms(at_ms, grace_ms)
            if until_ms and not until_ms < state.late_at_ms <= at_ms - feed_state.ahead_ms:
                self.end_until(state, until_ms)
        return bool(self._due)

    def _settle(self, until_ms: int) -> None:
        for symbol in tuple(self.unsettled):
            settling = self.instruments[symbol].outliers.settling
            settling.pass_time(until_ms)
            if settling.is_settled:
                self.unsettled.discard(symbol)

    def _due_at(self, until_ms: int) -> list[str]:
        """All when a minute has ended: nearly everything ends with one. In between, thousands take turns."""
        every, minute_ms = list(catalogue.by_symbol), interval_start(until_ms, MINUTE_MS)
        if len(every) <= MOST_AT_A_LOOK or minute_ms != self._looked_ms:
            self._looked_ms = minute_ms
            return every
        self._turn = (self._turn + 1) % TURNS
        return every[self._turn :: TURNS]

    def end_until(self, state: InstrumentState, until_ms: int) -> None:
        """Nothing more is taken from before then."""
        facts = state.facts
        self._end_windows(state, until_ms)
        self._pass_time(state, until_ms)
        if self.prices.history(facts).builder.has_ended(until_ms):
            self.apply_if_it_closes(state, CandlesEnded(facts.symbol, until_ms))
        is_open = facts.hours.is_open(until_ms)
        if state.is_open is not is_open and not is_open:
            reopens_ms = facts.hours.next_open(until_ms)
            self.apply_if_it_closes(
                state, MarketClosed(facts.symbol, NEVER_MS if reopens_ms is None else reopens_ms)
            )
        state.is_open = is_open

    def _turn_lags(self, minute: int) -> None:
        if self._lag_minute is not None and minute > self._lag_minute:
            for feed_state in self.feed_states.values():
                feed_state.lags.turn(minute - self._lag_minute, feed_state.ticks)
        self._lag_minute = minute

    def fill_terms(self, symbol: str, at_ms: int) -> FillTerms:
        state = self.instruments.get(symbol)
        if state is None:
            return FillTerms(self.fill_after_ms, ahead_ms=None)
        # The next engine continues from this checkpoint.
        self.changed[symbol] = state
        # Also while the feed reports no prices for it.
        feed_state, settling = self.feed_states.get(state.origin or state.source), state.outliers.settling
        lag_ms = 0 if feed_state is None else feed_state.lags.p99_ms(feed_state.ticks)
        unsettled_ms = settling.count(at_ms)
        ahead_ms = None if feed_state is None else feed_state.known_ahead_ms
        return FillTerms(max(self.fill_after_ms, lag_ms), settling.is_settled, unsettled_ms, ahead_ms)

    def note_unsettled(self, state: InstrumentState) -> None:
        symbol = state.facts.symbol
        if symbol not in self.unsettled and not state.outliers.settling.is_settled:
            self.unsettled.add(symbol)
            self.must_tell = True

    def missing_since(self, symbol: str, at_ms: int, most_ms: int) -> int | None:
        """When the first minute opened that is over and not known, if the market was open since."""
        facts = catalogue.find(symbol)
        if facts is None:
            return None
        this_minute_ms = interval_start(self.own_ms(symbol, at_ms), MINUTE_MS)
        start_ms = max(self.prices.history(facts).closed_until_ms, this_minute_ms - most_ms)
        is_missing = any(facts.hours.sessions_between(start_ms, this_minute_ms))
        return start_ms if is_missing else None

    def backfill(self, symbol: str, minutes: Sequence[PriceBar], basis: str, at_ms: int) -> int:
        """Minutes from a source's history, for times without data; returns how many were taken."""
        facts = catalogue.find(symbol)
        if facts is None:
            return 0
        state, history = self.instrument(facts, at_ms), self.prices.history(facts)
        taken, own_ms = 0, self.own_ms(symbol, at_ms)
        for minute in minutes:
            opened_ms, closed_until_ms = minute.opened_ms, history.closed_until_ms
            forming, is_broken = history.builder.forming("1m"), opened_ms in state.broken
            is_open = forming is not None and forming.opened_ms == opened_ms
            is_known = opened_ms < closed_until_ms or (is_open and not is_broken)
            if is_known or opened_ms + MINUTE_MS > own_ms or not facts.hours.is_open(opened_ms):
                continue
            if taken and closed_until_ms:
                self._fill(state, closed_until_ms, opened_ms)
            self._end_windows(state, opened_ms)
            own = msgspec.structs.replace(minute, source=state.source, by_venue=basis != "trades")
            self.apply_if_it_closes(state, HistoryMinute(symbol, own, basis, replaces=is_open))
            taken += 1
        return taken

    def breaks(self, origin: str, symbol: str, at_ms: int, *, is_over: bool) -> None:
        """Its connection begins or is over. Something was missed in the present minute and in the last one
        that it reported, or in which the engine or the feed before it ended."""
        state, source_ms = self.instruments.get(symbol), self.feed_state(origin).source_ms
        if state is None or source_ms is None or not state.choice.serves(origin):
            return
        own_ms, forming = self.own_ms(symbol, at_ms), self._forming(state)
        broken = {interval_start(own_ms, MINUTE_MS)}
        if is_over and source_ms:
            broken.add(interval_start(min(source_ms, own_ms), MINUTE_MS))
        elif not source_ms and forming is not None:
            broken.add(forming.opened_ms)
        self._break(state, broken, own_ms)

    def _break(self, state: InstrumentState, minutes: set[int], own_ms: int) -> None:
        forming, first_ms = self._forming(state), own_ms - HEALED_MS
        if forming is not None:
            first_ms = min(first_ms, forming.opened_ms)
        # What is older is closed, and stays as it is.
        state.broken = {each for each in state.broken | minutes if each >= first_ms}
        state.holed &= state.broken
        self._mark_partial(state)

    def _forming(self, state: InstrumentState) -> PriceBar | None:
        return self.prices.history(state.facts).builder.forming("1m")

    def _mark_partial(self, state: InstrumentState) -> None:
        minute = self._forming(state)
        if minute is not None and minute.partial is not (is_broken := minute.opened_ms in state.broken):
            minute.partial = is_broken
            self.changed[state.facts.symbol] = state

    def unheard(self, symbol: str, at_ms: int) -> Unheard | None:
        """Since when trades may be missing of minutes that are still open; None if nothing needs them."""
        facts = catalogue.find(symbol)
        if facts is None or (facts.order_flow_source, facts.volume_kind) == ("tick_rule", "ticks"):
            return None
        state, history = self.instrument(facts, at_ms), self.prices.history(facts)
        own_ms = self.own_ms(symbol, at_ms)
        if not facts.hours.is_open(own_ms):
            return None
        forming = history.builder.forming("1m")
        since_ms = history.closed_until_ms if forming is None else forming.opened_ms
        if not own_ms - HEALED_MS <= since_ms <= own_ms:
            return Unheard(interval_start(own_ms, MINUTE_MS), 0)
        known = 0 if forming is None else state.source_seqs.get(f"{state.source}{TRADES}", 0)
        return Unheard(since_ms, known)

    def heal(self, symbol: str, trades: Sequence[Tick], at_ms: int, since_ms: int = 0) -> int:
        """Count the trades missed since then, in their order, in minutes that are still open; returns how
        many count. They are no ticks, as their bid and ask are unknown."""
        facts = catalogue.find(symbol)
        if facts is None:
            return 0
        state, history, taken = self.instrument(facts, at_ms), self.prices.history(facts), 0
        state.broken = {each for each in state.broken if each < since_ms or each in state.holed}
        self._mark_partial(state)
        for minute_ms, group in groupby(trades, lambda trade: interval_start(trade.time_ms, MINUTE_MS)):
            missed = list(group)
            if minute_ms < history.closed_until_ms or not facts.hours.is_open(minute_ms):
                continue
            self._pass_time(state, missed[0].time_ms)
            for trade in missed:
                self._end_windows(state, trade.time_ms)
                state.count_missed(trade)
            part = bar_of(missed, facts, state.source)
            record = HistoryMinute(symbol, part, "trades", is_part=True)
            self._tell(state, self.prices.apply(record, facts), record)
            state.healed.add(minute_ms)
            taken += len(missed)
        if taken:
            self.changed[symbol] = state
        return taken

    def own_ms(self, symbol: str, at_ms: int) -> int:
        """By the clock of the feed that prices it."""
        state = self.instruments.get(symbol)
        name = "" if state is None else state.origin or state.source
        return at_ms - self.feed_states.get(name, NO_FEED).ahead_ms

    def serves_no_more(self, origin: str, symbol: str) -> None:
        """Its silence says nothing of the price from now on, until it sends a tick again."""
        state = self.instruments.get(symbol)
        if state is not None and state.origin == origin:
            state.origin = ""

    def feed_state(self, origin: str) -> FeedState:
        feed_state = self.feed_states.get(origin)
        if feed_state is None:
            feed_state = self.feed_states[origin] = FeedState()
        return feed_state

    def instrument(self, facts: InstrumentFacts, at_ms: int) -> InstrumentState:
        state = self.instruments.get(facts.symbol)
        if state is None:
            state = self.instruments[facts.symbol] = InstrumentState(
                facts, FeedChoice(self.feeds(facts), at_ms)
            )
        elif state.facts is not facts:
            feeds = self.feeds(facts)
            state.describe(facts)
            # Prices of the other kind are another series: the running engine ends this one first.
            if feeds != state.choice.feeds and is_simulated(feeds[0]) == state.simulated:
                state.choose(FeedChoice(feeds, at_ms))
        return state

    def is_priced_by(self, feed: str, facts: InstrumentFacts, at_ms: int) -> bool:
        choice = self.instrument(facts, at_ms).choice
        return choice.feed == feed and not choice.admits_none

    def numbers(self) -> dict[str, Checkpoint]:
        """How far each instrument's numbers have come."""
        return {
            symbol: Checkpoint(
                state.last,
                None,
                state.seq,
                state.flow_seq,
                kind_since_ms=state.kind_since_ms,
                candle_seqs=dict(state.candle_seqs),
                unsettled_ms=state.outliers.settling.unsettled_ms,
            )
            for symbol, state in self.instruments.items()
            if state.has_begun
        }

    def checkpoints(self, states: Iterable[InstrumentState]) -> dict[int, Checkpoint]:
        """Copies, because they are read in a thread while the candles go on forming."""
        made = {}
        for state in states:
            minute = self._forming(state)
            copied = None if minute is None else msgspec.structs.replace(minute)
            if copied is not None and copied.opened_ms in state.healed:
                # To the next engine its trades are bids.
                copied.partial = True
            flow = msgspec.to_builtins(state.flow.state(state.absorption.window))
            if state.has_begun:
                numbers = state.seq, state.flow_seq, flow, dict(state.source_seqs)
                kind = state.simulated, state.origin or state.source
                made[state.facts.id] = Checkpoint(
                    *(state.last, copied, *numbers, *kind),
                    candle_seqs=dict(state.candle_seqs),
                    unsettled_ms=state.outliers.settling.unsettled_ms,
                    windows=state.windows_to_keep(),
                )
        return made

    def resume(self, checkpoints: dict[str, Checkpoint], at_ms: int) -> None:
        """Go on from what the database holds."""
        for symbol, checkpoint in checkpoints.items():
            facts = catalogue.known(symbol)
            if facts is not None:
                state = self.instrument(facts, at_ms)
                state.resume(checkpoint, at_ms)
                self.note_unsettled(state)
                self._mark_partial(state)

    def repeat(self, record: AnyRecord, at_ms: int) -> None:
        """Another engine decided this and ended before it was written."""
        facts = catalogue.known(record.symbol)
        if facts is None:
            return
        state = self.instrument(facts, at_ms)
        if isinstance(record, TickAccepted | AbsorptionFound):
            state.repeat(record, at_ms)
            self.note_unsettled(state)
            self.changed[record.symbol] = state
        if isinstance(record, HistoryMinute) and record.is_part:
            state.healed.add(record.minute.opened_ms)
        if closed_by(record):
            state.repeat_candles(record)
            self.changed[record.symbol] = state
        self._keep(state, self.prices.apply(record, facts), record)

    def clear(self) -> None:
        self.prices.clear()
        for known in (self.feed_states, self.instruments, self.changed, self.unsettled):
            known.clear()
        for waiting in (self.rows, self.minute_flows, self.records, self._due):
            waiting.clear()

    def go_on_from(self, state: InstrumentState, tick: Tick) -> None:
        """A quote that was never sent, but stands for the time in between."""
        state.last = tick
        self.prices.quotes.put(tick, state.facts.digits, state.seq)
        self.changed[state.facts.symbol] = state

    def feeds(self, facts: InstrumentFacts) -> tuple[str, ...]:
        return feeds_of(facts.source, facts.fallback, self.default_feed)

    def _note_lag(self, state: InstrumentState, feed_state: FeedState, tick: Tick, own_ms: int) -> None:
        # A quote that stands is of long ago, and comes from now.
        lag_ms = 0 if isinstance(tick, StandingQuote) else own_ms - tick.time_ms
        feed_state.lag_ms = lag_ms
        # Simulated ticks are late only because the machine slept, and no client could know them earlier.
        if lag_ms > self.fill_after_ms and not state.simulated:
            feed_state.lags.note(lag_ms)
        if lag_ms > self.grace_ms:
            self._note_late(state, tick.time_ms, own_ms)

    def _note_late(self, state: InstrumentState, time_ms: int, at_ms: int) -> None:
        """Ticks of a missed minute come close together: the clock closes it when no more come. The present
        price is unknown."""
        if at_ms >= interval_start(time_ms, MINUTE_MS) + MINUTE_MS + self.grace_ms:
            state.late_at_ms = state.unsure_ms = at_ms

    def _end_windows(self, state: InstrumentState, until_ms: int) -> None:
        """Before their minute is closed: what they show counts in it."""
        if found := state.absorption.end_until(until_ms):
            self.records += [state.absorbed(each) for each in found]
            self.changed[state.facts.symbol] = state

    def _pass_time(self, state: InstrumentState, at_ms: int) -> None:
        """A minute that went by without a tick is flat, while the feed that sent the last one was alive."""
        if at_ms < state.minute_ends_ms:
            return
        first_ms, this_minute_ms = state.minute_ends_ms, interval_start(at_ms, MINUTE_MS)
        state.minute_ends_ms = this_minute_ms + MINUTE_MS
        feed_state = self.feed_states.get(state.origin) if state.choice.serves(state.origin) else None
        if first_ms and feed_state is not None and state.last is not None:
            until_ms = this_minute_ms if state.unsure_ms is None else min(this_minute_ms, state.unsure_ms)
            # If the market was stale before it began, its price is unknown.
            until_ms = min(until_ms, state.last.time_ms + state.facts.stale_after_s * 1000 + MINUTE_MS)
            for end_ms in range(first_ms, until_ms + 1, MINUTE_MS):
                if feed_state.was_alive(end_ms - MINUTE_MS, end_ms):
                    self._fill(state, end_ms - MINUTE_MS, end_ms)

    def _fill(self, state: InstrumentState, start_ms: int, end_ms: int) -> None:
        facts = state.facts
        for minute_ms in range(start_ms, end_ms, MINUTE_MS):
            if facts.active and facts.hours.is_open(minute_ms):
                self.apply_if_it_closes(state, EmptyMinute(facts.symbol, minute_ms, state.source))

    def apply_if_it_closes(
        self, state: InstrumentState, record: ClosingRecord, by_ms: int | None = None
    ) -> None:
        """Time alone changes nothing unless a candle ends by it; only then others must hear. `by_ms` is when
        all ended, whatever the hours say."""
        if closed := self.prices.apply(record, state.facts):
            self._tell(state, closed, record, by_ms)

    def _tell(
        self,
        state: InstrumentState,
        closed: Sequence[Closed],
        record: ClosingRecord,
        by_ms: int | None = None,
    ) -> None:
        self.records.append(record)
        self._number(state, closed, record, by_ms)
        self._keep(state, closed, record)

    def _number(
        self,
        state: InstrumentState,
        closed: Sequence[Closed],
        record: ClosingRecord,
        by_ms: int | None = None,
    ) -> None:
        digits = self.prices.history(state.facts).digits
        record.closed = [
            state.number_candle(timeframe, row_of(candle, digits), by_ms, partial=candle.partial)
            for timeframe, candle in closed
        ]
        self.changed[state.facts.symbol] = state

    def tell_filled(self, state: InstrumentState, before: History, until_ms: int) -> None:
        """What the reloaded series has beyond the one before: as closed candles, without a tick."""
        facts = state.facts
        found = self.prices.history(facts).closed_beyond(before)
        closed = [state.number_candle(timeframe, row) for timeframe, row in found]
        if closed:
            self.records.append(CandlesEnded(facts.symbol, until_ms, closed))
            self.changed[facts.symbol] = state

    def _keep(self, state: InstrumentState, closed: Sequence[Closed], record: AnyRecord) -> None:
        basis = self.prices.candle_price
        if isinstance(record, HistoryMinute) and record.basis != "trades":
            basis = record.basis
        for timeframe, candle in closed:
            if timeframe == "1m":
                state.note_minute(candle.opened_ms, record)
                if not state.is_backfilled and (flow := state.flow.minute(candle.opened_ms)):
                    self.minute_flows.append(FlowToWrite(state.facts.id, is_simulated(candle.source), flow))
            # What contains a minute of a venue's trade prices is no candle of our own ticks.
            own = "trades" if candle.opened_ms <= state.refilled_ms else basis
            self.rows.append((state.facts.id, timeframe, candle, own))
