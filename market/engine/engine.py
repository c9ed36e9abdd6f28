"""The engine: ticks come in, are checked, numbered, folded into prices and order flow, and handed on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from instruments.catalogue import InstrumentFacts, catalogue
from instruments.kinds import DEMO as DEMO
from instruments.kinds import PUSH as PUSH
from instruments.kinds import is_simulated
from market.engine.store.candle_rows import Row
from market.engine.store.checkpoints import Checkpoint
from market.prices.candles import MINUTE_MS, Closed, PriceBar, interval_start
from market.prices.history import History
from market.prices.quotes import Prices
from market.prices.records import (
    AbsorptionFound,
    AnyRecord,
    CandlesEnded,
    EmptyMinute,
    HistoryMinute,
    MarketClosed,
    SeriesBegan,
    Tick,
    TickAccepted,
)

from .instrument_state import InstrumentState
from .source import FeedChoice, FeedState, feeds_of
from .tick_rules import reason_to_refuse

CLOSE_GRACE_MS = 2_000
NEVER_MS = 1 << 52


class Engine:
    """All that happens to the prices of this process. It waits for nothing and asks no clock."""

    def __init__(self, prices: Prices, default_feed: str = PUSH, grace_ms: int = CLOSE_GRACE_MS) -> None:
        self.prices = prices
        self.grace_ms = grace_ms
        """How long after the end of a minute its ticks may come."""
        self.default_feed = default_feed
        """Who prices an instrument that names no source."""
        self.sources: dict[str, FeedState] = {}
        self.books: dict[str, InstrumentState] = {}
        self.rows: list[Row] = []
        """Closed candles that are not written yet."""
        self.changed: dict[str, InstrumentState] = {}
        """Instruments that took a tick since the last checkpoint."""
        self.records: list[AnyRecord] = []
        """What was decided and not yet handed on."""

    def take(self, origin: str, batch: Sequence[Tick], at_ms: int) -> list[str | None]:
        """What a feed sent: for each tick why it was refused. An empty batch is a sign of life."""
        source = self.source(origin)
        source.heard(at_ms)
        return [self.accept(tick, at_ms, origin) for tick in batch]

    def accept(self, tick: Tick, at_ms: int, origin: str = "") -> str | None:
        """Take a tick, or say why not; the last good value stays then."""
        origin = origin or self.default_feed
        source = self.source(origin)
        facts = catalogue.find(tick.symbol)
        if facts is None:
            reason: str | None = "unknown_symbol"
        else:
            book = self.book(facts, at_ms)
            reason = self._reason_to_refuse(book, tick, origin, at_ms)
            if reason is None:
                self._let_in(book, tick, origin, at_ms)
                source.ticks += 1
                source.lag_ms = at_ms - tick.time_ms
                return None
            book.note_refused(tick, reason, origin, at_ms)
        source.refused[reason or ""] += 1
        return reason

    def keep_time(self, at_ms: int, late_ms: int = 0) -> None:
        """Close what has ended and what nothing more is taken for, though no later tick came to say so. What
        came within the last `late_ms` may not have been read yet."""
        until_ms = at_ms - self.grace_ms - late_ms
        for facts in catalogue.all():
            book = self.book(facts, at_ms)
            if not until_ms < book.late_at_ms <= at_ms:
                self.end_until(book, until_ms)

    def end_until(self, book: InstrumentState, until_ms: int) -> None:
        """Nothing more is taken from before then."""
        facts = book.facts
        self._pass_time(book, until_ms)
        self._apply_if_it_closes(book, CandlesEnded(facts.symbol, until_ms))
        if found := book.watch.end_until(until_ms):
            self.records += [book.absorbed(absorption) for absorption in found]
            self.changed[facts.symbol] = book
        is_open = facts.hours.is_open(until_ms)
        if book.is_open is not is_open and not is_open:
            reopens_ms = facts.hours.next_open(until_ms)
            self._apply_if_it_closes(
                book, MarketClosed(facts.symbol, NEVER_MS if reopens_ms is None else reopens_ms)
            )
        book.is_open = is_open

    def missing_since(self, symbol: str, at_ms: int, most_ms: int) -> int | None:
        """When the first minute opened that is over and not known, if the market was open since."""
        facts = catalogue.find(symbol)
        if facts is None:
            return None
        this_minute_ms = interval_start(at_ms, MINUTE_MS)
        last_ms = self.prices.history(facts).last_closed_ms("1m")
        start_ms = this_minute_ms - most_ms
        if last_ms is not None:
            start_ms = max(last_ms + MINUTE_MS, start_ms)
        is_missing = any(facts.hours.sessions_between(start_ms, this_minute_ms))
        return start_ms if is_missing else None

    def backfill(self, symbol: str, minutes: Sequence[PriceBar], basis: str, at_ms: int) -> int:
        """Minutes out of a source's history, where nothing was known; returns how many were taken."""
        facts = catalogue.find(symbol)
        if facts is None:
            return 0
        book, history = self.book(facts, at_ms), self.prices.history(facts)
        taken = 0
        for minute in minutes:
            last_ms = history.last_closed_ms("1m")
            forming = history.builder.forming("1m")
            is_known = (last_ms is not None and minute.opened_ms <= last_ms) or (
                forming is not None and minute.opened_ms == forming.opened_ms
            )
            if is_known or minute.opened_ms + MINUTE_MS > at_ms or not facts.hours.is_open(minute.opened_ms):
                continue
            if last_ms is not None and last_ms + MINUTE_MS < minute.opened_ms and taken:
                self._fill(book, last_ms + MINUTE_MS, minute.opened_ms)
            told = msgspec.structs.replace(minute, source=book.source)
            self._apply_if_it_closes(book, HistoryMinute(symbol, told, basis))
            taken += 1
        return taken

    def serves_no_more(self, origin: str, symbol: str) -> None:
        """Its silence says nothing of the price from now on, until it sends a tick again."""
        book = self.books.get(symbol)
        if book is not None and book.origin == origin:
            book.origin = ""

    def source(self, origin: str) -> FeedState:
        source = self.sources.get(origin)
        if source is None:
            source = self.sources[origin] = FeedState()
        return source

    def book(self, facts: InstrumentFacts, at_ms: int) -> InstrumentState:
        book = self.books.get(facts.symbol)
        if book is None:
            book = self.books[facts.symbol] = InstrumentState(facts, FeedChoice(self._feeds(facts), at_ms))
            self._price(book)
        elif book.facts is not facts:
            feeds = self._feeds(facts)
            book.describe(facts)
            # Prices of the other kind are another series: whoever runs the engine ends this one first.
            if feeds != book.choice.feeds and is_simulated(feeds[0]) == book.simulated:
                book.choose(FeedChoice(feeds, at_ms))
                self._price(book)
        return book

    def is_priced_by(self, feed: str, facts: InstrumentFacts, at_ms: int) -> bool:
        choice = self.book(facts, at_ms).choice
        return choice.feed == feed and not choice.is_over

    def is_to_change_kind(self, facts: InstrumentFacts, at_ms: int) -> bool:
        return self.book(facts, at_ms).simulated != is_simulated(self._feeds(facts)[0])

    def take_up_again(self, facts: InstrumentFacts, at_ms: int) -> None:
        """Its series was to end, and is not any more: staff put the source back before that was written."""
        book = self.book(facts, at_ms)
        if book.choice.is_over:
            book.choose(FeedChoice(self._feeds(facts), at_ms))
            self._price(book)

    def end_series(self, facts: InstrumentFacts, at_ms: int) -> InstrumentState:
        """Nobody is let in any more, and every candle is closed with what it has."""
        book = self.book(facts, at_ms)
        book.choice.is_over = True
        self._apply_if_it_closes(book, MarketClosed(facts.symbol, NEVER_MS))
        return book

    def begin_series(
        self, facts: InstrumentFacts, history: History, checkpoint: Checkpoint, at_ms: int
    ) -> None:
        """The series of the other kind goes on from where it ended the last time."""
        book = self.book(facts, at_ms)
        choice = FeedChoice(self._feeds(facts), at_ms)
        # Somebody may have changed it again meanwhile.
        choice.is_over = is_simulated(choice.feed) != checkpoint.simulated
        book.begin(checkpoint, choice)
        self.prices.put_history(facts.symbol, history)
        self._price(book)
        last = checkpoint.last
        quote = () if last is None else (last.bid, last.ask, last.time_ms)
        record = SeriesBegan(facts.symbol, book.simulated, at_ms, book.seq, *quote)
        self.prices.apply(record, facts)
        self.records.append(record)

    def numbers(self) -> dict[str, Checkpoint]:
        """How far each instrument's numbers have come."""
        return {
            symbol: Checkpoint(book.last, None, book.seq, book.flow_seq, kind_since_ms=book.kind_since_ms)
            for symbol, book in self.books.items()
            if book.last is not None or book.seq
        }

    def checkpoints(self, books: Iterable[InstrumentState]) -> dict[int, Checkpoint]:
        """Copies, because they are read in a thread while the candles go on forming."""
        made = {}
        for book in books:
            minute = self.prices.history(book.facts).builder.forming("1m")
            copied = None if minute is None else msgspec.structs.replace(minute)
            state = msgspec.to_builtins(book.flow.state())
            if book.last is not None or book.seq:
                numbers = book.seq, book.flow_seq, state, dict(book.source_seqs)
                kind = book.simulated, book.origin or book.source
                made[book.facts.id] = Checkpoint(book.last, copied, *numbers, *kind)
        return made

    def resume(self, checkpoints: dict[str, Checkpoint], at_ms: int) -> None:
        """Go on from what the database holds."""
        for symbol, checkpoint in checkpoints.items():
            facts = catalogue.known(symbol)
            if facts is not None:
                book = self.book(facts, at_ms)
                book.resume(checkpoint)
                self._price(book)

    def repeat(self, record: AnyRecord, at_ms: int) -> None:
        """Another engine decided this and ended before it was written."""
        facts = catalogue.known(record.symbol)
        if facts is None:
            return
        book = self.book(facts, at_ms)
        if isinstance(record, TickAccepted):
            book.repeat(record)
            self.changed[record.symbol] = book
        elif isinstance(record, AbsorptionFound):
            book.flow_seq = record.flow_seq
        self._keep(book, self.prices.apply(record, facts), record)

    def clear(self) -> None:
        self.prices.clear()
        for kept in (self.sources, self.books, self.changed, self.rows, self.records):
            kept.clear()

    def go_on_from(self, book: InstrumentState, tick: Tick) -> None:
        """A quote that nobody was sent, but that stands for what went by meanwhile."""
        book.last = tick
        self.prices.board.put(tick, book.facts.digits, book.seq)
        self.changed[book.facts.symbol] = book

    def _feeds(self, facts: InstrumentFacts) -> tuple[str, ...]:
        return feeds_of(facts.source, facts.fallback, self.default_feed)

    def _price(self, book: InstrumentState) -> None:
        """Its candles are of this source from now on."""
        self.prices.history(book.facts).builder.price_by(book.source)

    def _reason_to_refuse(self, book: InstrumentState, tick: Tick, origin: str, at_ms: int) -> str | None:
        facts = book.facts
        if book.repeats(tick, origin):
            return "duplicate"
        history = self.prices.history(facts)
        last_closed_ms = history.last_closed_ms("1m")
        closed_until_ms = 0 if last_closed_ms is None else last_closed_ms + MINUTE_MS
        reason = reason_to_refuse(tick, book.last, closed_until_ms, facts, at_ms)
        if reason is not None:
            return reason
        reason = book.choice.admit(origin, at_ms, facts, self.sources)
        # Last, so that nobody confirms a price who has no say in it.
        if reason is None and book.outliers.refuses(tick, book.last, history.recent, facts, at_ms):
            return "outlier"
        return reason

    def _let_in(self, book: InstrumentState, tick: Tick, origin: str, at_ms: int) -> None:
        facts = book.facts
        self._pass_time(book, tick.time_ms)
        if book.switches != book.choice.switches:
            book.choose(book.choice)
            self._price(book)
        book.unsure_ms = None
        if at_ms - tick.time_ms > self.grace_ms:
            self._note_late(book, tick.time_ms, at_ms)
        # What forms now is closed by the clock with its market, though that was closed when it came.
        book.is_open = True
        records = book.number(tick, origin, at_ms)
        self.changed[facts.symbol] = book
        self.records += records
        if closed := self.prices.apply(records[-1], facts):
            self._keep(book, closed, records[-1])

    def _note_late(self, book: InstrumentState, time_ms: int, at_ms: int) -> None:
        """A minute that was missed and is filled now has its ticks close together: the clock lets it be
        until no more come. What the price is by now nobody has said."""
        if at_ms >= interval_start(time_ms, MINUTE_MS) + MINUTE_MS + self.grace_ms:
            book.late_at_ms = book.unsure_ms = at_ms

    def _pass_time(self, book: InstrumentState, at_ms: int) -> None:
        """A minute that went by without a tick is flat, while who sent the last one was alive."""
        this_minute_ms = interval_start(at_ms, MINUTE_MS)
        passed_ms = book.passed_ms
        if passed_ms is None or passed_ms < this_minute_ms:
            book.passed_ms = this_minute_ms
            source = self.sources.get(book.origin) if book.choice.serves(book.origin) else None
            if passed_ms is not None and source is not None:
                until_ms = this_minute_ms if book.unsure_ms is None else min(this_minute_ms, book.unsure_ms)
                for end_ms in range(passed_ms + MINUTE_MS, until_ms + 1, MINUTE_MS):
                    if source.was_alive(end_ms - MINUTE_MS, end_ms):
                        self._fill(book, end_ms - MINUTE_MS, end_ms)

    def _fill(self, book: InstrumentState, start_ms: int, end_ms: int) -> None:
        facts = book.facts
        for minute_ms in range(start_ms, end_ms, MINUTE_MS):
            if facts.active and facts.hours.is_open(minute_ms):
                self._apply_if_it_closes(book, EmptyMinute(facts.symbol, minute_ms))

    def _apply_if_it_closes(self, book: InstrumentState, record: AnyRecord) -> None:
        """Time alone changes nothing unless a candle ends by it; only then others must hear."""
        if closed := self.prices.apply(record, book.facts):
            self.records.append(record)
            self._keep(book, closed, record)

    def _keep(self, book: InstrumentState, closed: Sequence[Closed], record: AnyRecord) -> None:
        basis = self.prices.candle_price
        if isinstance(record, HistoryMinute) and record.basis != "trades":
            basis = record.basis
        for timeframe, candle in closed:
            if timeframe == "1m":
                book.note_minute(candle.opened_ms, record)
            # What contains a minute of a venue's trade prices is no candle of our own ticks.
            own = "trades" if candle.opened_ms <= book.refilled_ms else basis
            self.rows.append((book.facts.id, timeframe, candle, own))
