"""What the engine keeps of one instrument: its last tick, its numbers, its order flow."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from instruments.facts import DEMO, PUSH, InstrumentFacts, is_simulated
from market.prices.candles import DAY_MS, TIMEFRAMES
from market.prices.history import CandleRow, History
from market.prices.order_flow import Absorption, AbsorptionWatch, FlowState, FlowUpdate, OrderFlow
from market.prices.records import (
    AbsorptionFound,
    AnyRecord,
    ClosedCandle,
    EmptyMinute,
    HistoryMinute,
    StandingQuote,
    Tick,
    TickAccepted,
    closed_by,
)
from market.store.checkpoints import Checkpoint

from .admission import FeedChoice, FeedState, Outliers, is_sent_again, reason_to_refuse, shows_another_price

TRADES = " trades"
OLD = frozenset({"older_than_last", "too_late"})


def numbering(tick: Tick, origin: str) -> str:
    """A source numbers its trades apart from its quotes."""
    return f"{origin}{TRADES}" if tick.side else origin


def flow_of(record: TickAccepted) -> FlowUpdate | None:
    """The tick's update of the order flow, as its engine recorded it."""
    if not record.flow_seq:
        return None
    sold, bought = record.bid_volume, record.ask_volume
    return FlowUpdate(sold, bought, bought - sold, record.cumulative_delta, record.price, record.time_ms)


@dataclass(slots=True, eq=False)
class InstrumentState:
    facts: InstrumentFacts
    choice: FeedChoice
    source: str = field(init=False)
    switches: int = field(init=False)
    origin: str = field(init=False)
    """The feed that sent the last tick; empty once nothing more comes from it."""
    unsure_ms: int | None = None
    """Since when its source has sent what was refused, or is old: its price may be another than this."""
    simulated: bool = field(init=False)
    """The kind of the present series."""
    kind_since_ms: int | None = None
    """Since when; None: always."""
    flow: OrderFlow = field(init=False)
    absorption: AbsorptionWatch = field(init=False)
    outliers: Outliers = field(default_factory=Outliers)
    last: Tick | None = None
    seq: int = 0
    flow_seq: int = 0
    candle_seqs: dict[str, int] = field(default_factory=dict)
    """The last number of the closed candles of each timeframe."""
    source_seqs: dict[str, int] = field(default_factory=dict)
    """The last number in each origin's numbering."""
    minute_ends_ms: int = 0
    """When the minute ends up to which it has its flat candles; 0 before the first."""
    refilled_ms: int = -1
    """When the last minute opened that came from a venue's trade prices, or repeats one that did."""
    is_refilled: bool = False
    """Whether that was the last of all."""
    is_backfilled: bool = False
    """Whether the last minute came from a venue's history, or repeats one that did: its order flow is
    unknown."""
    broken: set[int] = field(default_factory=set)
    """When the minutes opened of which something was missed, and has not come."""
    holed: set[int] = field(default_factory=set)
    """Those in which ticks were taken since: the trades after the last of them do not make them whole."""
    healed: set[int] = field(default_factory=set)
    """When the minutes opened of which a part was missed, and came from a venue's trades."""
    healed_seqs: dict[str, int] = field(default_factory=dict)
    """In each origin's numbering, up to which number they did."""
    late_at_ms: int = 0
    """When a tick last came of a minute that the clock would have closed."""
    is_open: bool | None = None
    """Whether the market is, as far as time has passed; None before the first look."""

    def __post_init__(self) -> None:
        self.choose(self.choice)
        self.origin, self.simulated = self.source, is_simulated(self.source)
        self._measure_anew()

    @property
    def has_begun(self) -> bool:
        """Whether numbers were given that must not be given again."""
        return self.last is not None or bool(self.seq or self.candle_seqs)

    @property
    def known_ms(self) -> int:
        """Up to when its series is known, or was another one."""
        return max(self.last.time_ms if self.last else 0, (self.kind_since_ms or 0) - 1)

    def _measure_anew(self) -> None:
        self.flow = OrderFlow(self.facts.digits)
        self.absorption = AbsorptionWatch(self.facts.digits, self.facts.pip_size)

    def choose(self, choice: FeedChoice) -> None:
        self.choice = choice
        self.source = choice.feed
        self.switches = choice.switches

    def describe(self, facts: InstrumentFacts) -> None:
        """Staff have written something else of the instrument."""
        before, self.facts = self.facts, facts
        if (before.digits, before.pip_size) != (facts.digits, facts.pip_size):
            self.flow.measure_by(facts.digits, self.last)
            self.absorption.measure_by(facts.digits, facts.pip_size)

    def note_refused(self, tick: Tick, reason: str, origin: str, at_ms: int) -> None:
        """What the source of these prices sent, and was not believed. It is `at_ms` in its own time."""
        if not self.choice.serves(origin):
            return
        last = self.last
        if last is not None and (tick.time_ms, tick.bid, tick.ask) == (last.time_ms, last.bid, last.ask):
            self.unsure_ms = None
        elif self.unsure_ms is None and shows_another_price(reason, tick, last, at_ms):
            self.unsure_ms = at_ms

    def note_minute(self, opened_ms: int, record: AnyRecord) -> None:
        """One that was closed, and by what: a flat one is of the prices that it repeats."""
        if isinstance(record, HistoryMinute) and record.minute.opened_ms == opened_ms:
            self.is_backfilled, self.is_refilled = True, record.basis == "trades"
        elif not (isinstance(record, EmptyMinute) and record.minute_ms == opened_ms):
            self.is_backfilled = self.is_refilled = False
        if self.is_refilled or opened_ms in self.healed:
            self.refilled_ms = opened_ms
            self.healed.discard(opened_ms)

    def reason_to_refuse(
        self, tick: Tick, origin: str, at_ms: int, history: History, feed_states: Mapping[str, FeedState]
    ) -> str | None:
        last, facts, ahead_ms = self.last, self.facts, feed_states[origin].ahead_ms
        # Most sources number nothing.
        if tick.source_seq is not None:
            own = numbering(tick, origin)
            is_healed = tick.source_seq <= self.healed_seqs.get(own, -1)
            if is_healed or is_sent_again(tick, self.source_seqs.get(own), last):
                return "duplicate"
        reason = reason_to_refuse(tick, last, history.closed_until_ms, facts, at_ms - ahead_ms)
        if reason in OLD and isinstance(tick, StandingQuote) and self._is_present(tick, at_ms - ahead_ms):
            reason = None
        if reason is None:
            reason = self.choice.admit(origin, at_ms, facts, feed_states)
        # Last, so that a feed that has no say in a price does not confirm it.
        if reason is None and not self.outliers.admit(tick, last, history.recent, facts, at_ms, ahead_ms):
            return "outlier"
        return reason

    def _is_present(self, quote: StandingQuote, own_ms: int) -> bool:
        """Whether it says another price than the last one. Of a day before, it says nothing of this one's
        candles."""
        last, is_of_today = self.last, quote.time_ms // DAY_MS == own_ms // DAY_MS
        return is_of_today and last is not None and (quote.bid, quote.ask) != (last.bid, last.ask)

    def number(self, tick: Tick, origin: str, at_ms: int, feed_state: FeedState) -> list[AnyRecord]:
        """Make a tick that was let in the next of its streams, after what it shows of the window before."""
        self.last, self.origin = tick, origin
        facts = self.facts
        update = self.flow.take(tick, facts.order_flow_source == "trades")
        found = self.absorption.take(tick, update)
        records: list[AnyRecord] = [self.absorbed(each) for each in found] if found else []
        volume = 1.0 if facts.volume_kind == "ticks" else tick.volume
        bid, ask = round(tick.bid, facts.digits), round(tick.ask, facts.digits)
        self.seq += 1
        if update is None:
            taken = TickAccepted(tick.symbol, bid, ask, tick.time_ms, volume, self.seq)
        else:
            self.flow_seq += 1
            sold, bought = update.bid_volume, update.ask_volume
            flow = self.flow_seq, sold, bought, update.cumulative_delta, update.price
            taken = TickAccepted(tick.symbol, bid, ask, tick.time_ms, volume, self.seq, *flow)
        if tick.source_seq is not None:
            taken.numbering, taken.source_seq = numbering(tick, origin), tick.source_seq
            self.source_seqs[taken.numbering] = taken.source_seq
        taken.accepted_ms, taken.source, taken.side = at_ms, self.source, tick.side
        if feed_state.key:
            taken.key = feed_state.key
        if feed_state.is_moved:
            taken.is_moved = True
        taken.ahead_ms = feed_state.ahead_ms
        settling = self.outliers.settling
        taken.unsettled_ms = settling.unsettled_ms
        if not settling.is_settled:
            taken.settled, taken.unsettled_ms = False, settling.count(at_ms)
        records.append(taken)
        return records

    def count_missed(self, trade: Tick) -> None:
        """In the sums of its minute and its window; no update of it is sent now."""
        if trade.source_seq is not None:
            own = numbering(trade, self.source)
            self.source_seqs[own] = self.healed_seqs[own] = trade.source_seq
        update = self.flow.take(trade, self.facts.order_flow_source == "trades")
        self.absorption.count_missed(trade, update)

    def number_candle(
        self, timeframe: str, row: CandleRow, by_ms: int | None = None, *, partial: bool = False
    ) -> ClosedCandle:
        """Make it the next of its timeframe. `by_ms` is when all ended, whatever the hours say."""
        seq = self.candle_seqs[timeframe] = self.candle_seqs.get(timeframe, 0) + 1
        end_ms = row.opened_ms + TIMEFRAMES[timeframe]
        ended_ms = self.facts.hours.end_of_trading(row.opened_ms, end_ms)
        ended_ms = ended_ms if by_ms is None else min(ended_ms, by_ms)
        return ClosedCandle(timeframe, seq, ended_ms, *row, partial)

    def absorbed(self, found: Absorption) -> AbsorptionFound:
        self.flow_seq += 1
        self.flow.note_absorption(found.time_ms)
        return AbsorptionFound(self.facts.symbol, self.flow_seq, *msgspec.structs.astuple(found))

    def windows_to_keep(self) -> list[tuple[int, int]] | None:
        """None if the stored ones are unchanged."""
        if self.absorption.is_kept:
            return None
        self.absorption.is_kept = True
        return self.absorption.volumes()

    def resume(self, checkpoint: Checkpoint, at_ms: int) -> None:
        self.last, self.seq, self.flow_seq = checkpoint.last, checkpoint.seq, checkpoint.flow_seq
        self.source_seqs, self.candle_seqs = dict(checkpoint.source_seqs), dict(checkpoint.candle_seqs)
        self.origin = checkpoint.source or self.choice.feed
        if checkpoint.flow_state is not None:
            last_ms = checkpoint.last.time_ms if checkpoint.last else 0
            kept = msgspec.convert(checkpoint.flow_state, FlowState, str_keys=True)
            self.flow.restore(kept, last_ms)
            self.absorption.restore(kept.window, checkpoint.windows or ())
        if (minute := checkpoint.minute) is not None and minute.partial:
            self.broken, self.holed = {minute.opened_ms}, {minute.opened_ms}
        self.kind_since_ms = checkpoint.kind_since_ms
        if checkpoint.simulated != self.simulated:
            # What prices it now is not what its series is of: that has to be ended first.
            self.simulated, self.choice.admits_none = checkpoint.simulated, True
            self.source = checkpoint.source or (DEMO if checkpoint.simulated else PUSH)
        self._unsettle(checkpoint.unsettled_ms, at_ms)

    def begin(self, checkpoint: Checkpoint, choice: FeedChoice, at_ms: int) -> None:
        """A series of the other kind; the numbers go on, because the streams do."""
        self._measure_anew()
        unsettled_ms, self.outliers = self.outliers.settling.count(at_ms), Outliers()
        seq, flow_seq, candle_seqs = self.seq, self.flow_seq, self.candle_seqs
        self.choose(choice)
        self.simulated, self.minute_ends_ms, self.refilled_ms = checkpoint.simulated, 0, -1
        self.unsure_ms, self.is_refilled, self.is_backfilled = None, False, False
        self.broken, self.holed, self.healed = set(), set(), set()
        self.resume(checkpoint._replace(unsettled_ms=unsettled_ms), at_ms)
        self.seq, self.flow_seq, self.candle_seqs = seq, flow_seq, candle_seqs

    def repeat(self, record: TickAccepted | AbsorptionFound, at_ms: int) -> None:
        """Go on from what another engine made of a tick."""
        if isinstance(record, AbsorptionFound):
            self.flow_seq = record.flow_seq
            self.flow.note_absorption(record.time_ms)
            self.absorption.end_until(record.time_ms)
            return
        side = (record.ask_volume > 0) - (record.bid_volume > 0)
        traded = record.ask_volume + record.bid_volume
        price = record.price if side else None
        self.last = Tick(record.symbol, record.bid, record.ask, record.time_ms, traded, side, price)
        self.flow.follow(record)
        # What the windows before have shown stands in the journal.
        self.absorption.take(self.last, flow_of(record))
        self.seq = record.seq
        if record.numbering:
            self.source_seqs[record.numbering] = record.source_seq
            self.origin = record.numbering.removesuffix(TRADES)
        if record.flow_seq:
            self.flow_seq = record.flow_seq
        self._unsettle(record.unsettled_ms, at_ms)

    def _unsettle(self, unsettled_ms: int, at_ms: int) -> None:
        """Go on where another engine or another series ended."""
        if self.facts.outlier_percent and self.last is not None:
            self.outliers.settling.go_on(unsettled_ms, at_ms)
        else:
            self.outliers.settling.unsettled_ms = unsettled_ms

    def repeat_candles(self, record: AnyRecord) -> None:
        """Go on from the numbers that another engine gave the candles it closed."""
        self.candle_seqs |= {candle.timeframe: candle.seq for candle in closed_by(record)}
