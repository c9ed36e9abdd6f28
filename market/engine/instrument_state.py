"""What the engine keeps of one instrument: its last tick, its numbers, its order flow."""

from __future__ import annotations

import msgspec

from instruments.catalogue import InstrumentFacts
from instruments.kinds import DEMO, PUSH, is_simulated
from market.engine.store.checkpoints import Checkpoint
from market.prices.absorption import Absorption, AbsorptionWatch
from market.prices.order_flow import FlowState, OrderFlow
from market.prices.records import AbsorptionFound, AnyRecord, EmptyMinute, HistoryMinute, Tick, TickAccepted

from .source import FeedChoice
from .tick_rules import Outliers, shows_another_price

TRADES = " trades"


def numbering(tick: Tick, origin: str) -> str:
    """A source numbers its trades apart from its quotes."""
    return f"{origin}{TRADES}" if tick.side else origin


class InstrumentState:
    __slots__ = (
        "choice",
        "facts",
        "flow",
        "flow_seq",
        "is_open",
        "is_refilled",
        "kind_since_ms",
        "last",
        "outliers",
        "late_at_ms",
        "origin",
        "passed_ms",
        "refilled_ms",
        "seq",
        "simulated",
        "source",
        "source_seqs",
        "switches",
        "unsure_ms",
        "watch",
    )

    def __init__(self, facts: InstrumentFacts, choice: FeedChoice) -> None:
        self.facts = facts
        self.choose(choice)
        self.origin = choice.feed
        """Who sent the last tick; empty where nothing more comes of it from there."""
        self.unsure_ms: int | None = None
        """Since when its source has sent what was refused, or is old: its price may be another than this."""
        self.simulated = is_simulated(choice.feed)
        """Of which kind the series is that goes on."""
        self.kind_since_ms: int | None = None
        """Since when; None: always."""
        self.flow = OrderFlow(facts.digits)
        self.watch = AbsorptionWatch(facts.digits, facts.pip_size)
        self.outliers = Outliers()
        self.last: Tick | None = None
        self.seq = 0
        self.flow_seq = 0
        self.source_seqs: dict[str, int] = {}
        """The last number in each origin's numbering."""
        self.passed_ms: int | None = None
        """The minute up to which it has its flat candles."""
        self.refilled_ms = -1
        """When the last minute opened that came from a venue's trade prices, or repeats one that did."""
        self.is_refilled = False
        """Whether that was the last of all."""
        self.late_at_ms = 0
        """When a tick last came of a minute that the clock would have closed."""
        self.is_open: bool | None = None
        """Whether the market is, as far as time has passed; None before the first look."""

    @property
    def known_ms(self) -> int:
        """Up to when its series is known, or was another one."""
        return max(self.last.time_ms if self.last else 0, (self.kind_since_ms or 0) - 1)

    def choose(self, choice: FeedChoice) -> None:
        self.choice = choice
        self.source = choice.feed
        self.switches = choice.switches

    def describe(self, facts: InstrumentFacts) -> None:
        """Staff have written something else of the instrument."""
        before, self.facts = self.facts, facts
        if (before.digits, before.pip_size) != (facts.digits, facts.pip_size):
            self.flow.measure_by(facts.digits, self.last)
            self.watch.measure_by(facts.digits, facts.pip_size)

    def note_refused(self, tick: Tick, reason: str, origin: str, at_ms: int) -> None:
        """What the source of these prices sent, and was not believed."""
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
            self.is_refilled = record.basis == "trades"
        elif not (isinstance(record, EmptyMinute) and record.minute_ms == opened_ms):
            self.is_refilled = False
        if self.is_refilled:
            self.refilled_ms = opened_ms

    def repeats(self, tick: Tick, origin: str) -> bool:
        """Whether the source sent this before. Lower numbers with later times are a numbering begun anew."""
        if tick.source_seq is None:
            return False
        known = self.source_seqs.get(numbering(tick, origin))
        if known is None or tick.source_seq > known:
            return False
        return tick.source_seq == known or self.last is None or tick.time_ms <= self.last.time_ms

    def number(self, tick: Tick, origin: str, at_ms: int) -> list[AnyRecord]:
        """Make a tick that was let in the next of its streams, after what it shows of the window before."""
        self.last, self.origin = tick, origin
        self.outliers.note(tick)
        facts = self.facts
        update = self.flow.take(tick, facts.order_flow_source == "trades")
        found = self.watch.take(tick, update)
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
        taken.accepted_ms = at_ms
        records.append(taken)
        return records

    def absorbed(self, found: Absorption) -> AbsorptionFound:
        self.flow_seq += 1
        return AbsorptionFound(
            symbol=self.facts.symbol,
            flow_seq=self.flow_seq,
            side=found.side,
            price=found.price,
            volume=found.volume,
            delta=found.delta,
            price_range=found.price_range,
            strength=found.strength,
            time_ms=found.time_ms,
        )

    def resume(self, checkpoint: Checkpoint) -> None:
        self.last, self.seq, self.flow_seq = checkpoint.last, checkpoint.seq, checkpoint.flow_seq
        self.source_seqs = dict(checkpoint.source_seqs)
        self.origin = checkpoint.source or self.choice.feed
        if checkpoint.flow_state is not None:
            self.flow.restore(msgspec.convert(checkpoint.flow_state, FlowState))
        self.kind_since_ms = checkpoint.kind_since_ms
        if checkpoint.simulated != self.simulated:
            # What prices it now is not what its series is of: that has to be ended first.
            self.simulated, self.choice.admits_nobody = checkpoint.simulated, True
            self.source = checkpoint.source or (DEMO if checkpoint.simulated else PUSH)

    def begin(self, checkpoint: Checkpoint, choice: FeedChoice) -> None:
        """A series of the other kind; the numbers go on, because the streams do."""
        self.flow = OrderFlow(self.facts.digits)
        self.watch = AbsorptionWatch(self.facts.digits, self.facts.pip_size)
        self.outliers = Outliers()
        seq, flow_seq = self.seq, self.flow_seq
        self.choose(choice)
        self.simulated, self.passed_ms, self.refilled_ms = checkpoint.simulated, None, -1
        self.unsure_ms, self.is_refilled = None, False
        self.resume(checkpoint)
        self.seq, self.flow_seq = seq, flow_seq

    def repeat(self, record: TickAccepted) -> None:
        """Go on from a tick that another engine let in."""
        side = (record.ask_volume > 0) - (record.bid_volume > 0)
        traded = record.ask_volume + record.bid_volume
        price = record.price if side else None
        self.last = Tick(record.symbol, record.bid, record.ask, record.time_ms, traded, side, price)
        self.flow.follow(record)
        self.seq = record.seq
        if record.numbering:
            self.source_seqs[record.numbering] = record.source_seq
            self.origin = record.numbering.removesuffix(TRADES)
        if record.flow_seq:
            self.flow_seq = record.flow_seq
