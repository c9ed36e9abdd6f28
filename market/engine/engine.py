"""The engine: ticks come in, are checked, numbered, folded into prices and order flow, and handed on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from instruments.catalogue import InstrumentFacts, catalogue
from market.prices.candles import Candle, Closed
from market.prices.market import Prices
from market.prices.records import Absorbed, AnyRecord, Ended, Halted, Passed, Refilled, Taken
from market.prices.ticks import Tick
from market.prices.timeframes import MINUTE_MS, interval_start

from .book import Book
from .checkpoints import Checkpoint
from .checks import reason_to_refuse
from .source import Choice, Source, feeds_of
from .store import Row

DEMO = "demo"
PUSH = "push"


class Engine:
    """All that happens to the prices of this process. It waits for nothing and asks no clock."""

    def __init__(self, prices: Prices, default_feed: str = PUSH) -> None:
        self.prices = prices
        self.default_feed = default_feed
        """Who prices an instrument that names no source."""
        self.sources: dict[str, Source] = {}
        self.books: dict[str, Book] = {}
        self.rows: list[Row] = []
        """Closed candles that are not written yet."""
        self.changed: dict[str, Book] = {}
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
        source.refused[reason or ""] += 1
        return reason

    def keep_time(self, at_ms: int) -> None:
        """Close what has ended, though no tick came to say so."""
        for facts in catalogue.all():
            book = self.book(facts, at_ms)
            self._pass_time(book, at_ms)
            self._apply_if_it_closes(book, Ended(facts.symbol, at_ms))
            if found := book.watch.end_until(at_ms):
                self.records += [book.absorbed(absorption) for absorption in found]
                self.changed[facts.symbol] = book
            is_open = facts.active and facts.hours.is_open(at_ms)
            if book.is_open and not is_open:
                self._apply_if_it_closes(book, Halted(facts.symbol))
            book.is_open = is_open

    def missing_since(self, symbol: str, at_ms: int, most_ms: int) -> int | None:
        """When the first minute opened that is over and not known, if the market was open since."""
        facts = catalogue.find(symbol)
        if facts is None:
            return None
        this_minute_ms = interval_start(at_ms, MINUTE_MS)
        last_ms = self.prices.history(facts).last_closed_ms("1m")
        start_ms = this_minute_ms - most_ms if last_ms is None else max(last_ms, this_minute_ms - most_ms)
        is_missing = any(facts.hours.sessions_between(start_ms + MINUTE_MS, this_minute_ms))
        return start_ms if is_missing else None

    def backfill(self, symbol: str, minutes: Sequence[Candle], basis: str, at_ms: int) -> int:
        """Minutes out of a source's history, where nothing was known; returns how many were taken."""
        facts = catalogue.find(symbol)
        if facts is None:
            return 0
        book, history = self.book(facts, at_ms), self.prices.history(facts)
        taken = 0
        for minute in minutes:
            last_ms = history.last_closed_ms("1m")
            # The one in which the source was lost is known in part: bars of our own kind may complete it.
            is_known = last_ms is not None and (
                minute.opened_ms < last_ms or (minute.opened_ms == last_ms and basis != self.basis_of(book))
            )
            if is_known or minute.opened_ms + MINUTE_MS > at_ms or not facts.hours.is_open(minute.opened_ms):
                continue
            if last_ms is not None and last_ms + MINUTE_MS < minute.opened_ms and taken:
                self._fill(book, last_ms + MINUTE_MS, minute.opened_ms)
            if basis == "trades":
                book.refilled_ms = minute.opened_ms
            self._apply_if_it_closes(book, Refilled(symbol, minute, basis), basis)
            taken += 1
        return taken

    def source(self, origin: str) -> Source:
        source = self.sources.get(origin)
        if source is None:
            source = self.sources[origin] = Source()
        return source

    def book(self, facts: InstrumentFacts, at_ms: int) -> Book:
        book = self.books.get(facts.symbol)
        if book is None:
            choice = Choice(feeds_of(facts.source, facts.fallback, self.default_feed), at_ms)
            book = self.books[facts.symbol] = Book(facts, choice)
        elif book.facts is not facts:
            feeds = feeds_of(facts.source, facts.fallback, self.default_feed)
            if feeds != book.choice.feeds:
                book.choice = Choice(feeds, at_ms)
            book.facts = facts
        return book

    def basis_of(self, book: Book) -> str:
        return DEMO if book.choice.feed == DEMO else self.prices.candle_price

    def numbers(self) -> dict[str, Checkpoint]:
        """How far each instrument's numbers have come."""
        return {
            symbol: Checkpoint(book.last, None, book.seq, book.flow_seq)
            for symbol, book in self.books.items()
            if book.last is not None
        }

    def checkpoints(self, books: Iterable[Book]) -> dict[int, Checkpoint]:
        """Copies, because they are read in a thread while the candles go on forming."""
        made = {}
        for book in books:
            minute = self.prices.history(book.facts).builder.forming("1m")
            copied = None if minute is None else msgspec.structs.replace(minute)
            state = msgspec.to_builtins(book.flow.state())
            if book.last is not None:
                numbers = book.seq, book.flow_seq, state, dict(book.source_seqs)
                made[book.facts.id] = Checkpoint(book.last, copied, *numbers)
        return made

    def resume(self, checkpoints: dict[str, Checkpoint], at_ms: int) -> None:
        """Go on from what the database holds."""
        for symbol, checkpoint in checkpoints.items():
            facts = catalogue.known(symbol)
            if facts is not None:
                self.book(facts, at_ms).resume(checkpoint)

    def repeat(self, record: AnyRecord, at_ms: int) -> None:
        """Another engine decided this and ended before it was written."""
        facts = catalogue.known(record.symbol)
        if facts is None:
            return
        book = self.book(facts, at_ms)
        if isinstance(record, Taken):
            book.repeat(record)
            self.changed[record.symbol] = book
        elif isinstance(record, Absorbed):
            book.flow_seq = record.flow_seq
        basis = self.basis_of(book)
        if isinstance(record, Refilled):
            basis = record.basis
            if basis == "trades":
                book.refilled_ms = record.minute.opened_ms
        self._keep(book, self.prices.apply(record, facts), basis)

    def clear(self) -> None:
        self.prices.clear()
        for kept in (self.sources, self.books, self.changed, self.rows, self.records):
            kept.clear()

    def _reason_to_refuse(self, book: Book, tick: Tick, origin: str, at_ms: int) -> str | None:
        facts = book.facts
        if book.repeats(tick, origin):
            return "duplicate"
        last_closed_ms = self.prices.history(facts).last_closed_ms("1m")
        reason = reason_to_refuse(tick, book.last, last_closed_ms, facts, at_ms)
        if reason is not None:
            return reason
        return book.choice.admit(origin, at_ms, facts, self.sources)

    def _let_in(self, book: Book, tick: Tick, origin: str, at_ms: int) -> None:
        facts = book.facts
        self._pass_time(book, tick.time_ms)
        records = book.number(tick, origin, at_ms)
        self.changed[facts.symbol] = book
        self.records += records
        if closed := self.prices.apply(records[-1], facts):
            self._keep(book, closed, self.basis_of(book))

    def _pass_time(self, book: Book, at_ms: int) -> None:
        """A minute that went by without a tick while the source was alive is flat."""
        this_minute_ms = interval_start(at_ms, MINUTE_MS)
        passed_ms = book.passed_ms
        if passed_ms is None or passed_ms < this_minute_ms:
            book.passed_ms = this_minute_ms
            if passed_ms is not None:
                sources = [source for name, source in self.sources.items() if book.choice.serves(name)]
                for minute_ms in range(passed_ms, this_minute_ms, MINUTE_MS):
                    if any(source.was_alive(minute_ms, minute_ms + MINUTE_MS) for source in sources):
                        self._fill(book, minute_ms, minute_ms + MINUTE_MS)

    def _fill(self, book: Book, start_ms: int, end_ms: int) -> None:
        facts = book.facts
        for minute_ms in range(start_ms, end_ms, MINUTE_MS):
            if facts.active and facts.hours.is_open(minute_ms):
                self._apply_if_it_closes(book, Passed(facts.symbol, minute_ms))

    def _apply_if_it_closes(self, book: Book, record: AnyRecord, basis: str = "") -> None:
        """Time alone changes nothing unless a candle ends by it; only then others must hear."""
        if closed := self.prices.apply(record, book.facts):
            self.records.append(record)
            self._keep(book, closed, basis or self.basis_of(book))

    def _keep(self, book: Book, closed: Sequence[Closed], basis: str) -> None:
        for timeframe, candle in closed:
            # What contains a minute of a venue's trade prices is no candle of our own ticks.
            own = "trades" if candle.opened_ms <= book.refilled_ms else basis
            self.rows.append((book.facts.id, timeframe, candle, own))
