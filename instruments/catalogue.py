"""The instruments in memory, so that no quote has to ask the database about its instrument."""

import itertools
import threading
from collections.abc import Collection, Iterable
from decimal import Decimal
from difflib import get_close_matches
from typing import Any, Literal, NamedTuple

from django.conf import settings
from django.dispatch import Signal

from core.contract.errors import SymbolNotFound
from core.threads import in_thread

from .facts import InstrumentFacts as InstrumentFacts
from .facts import default_feed, feeds_of
from .models import Instrument, WithheldSource


# Whether data of a source may be passed on: the terms of many venues forbid it.
def may_be_passed_on(feeds: Iterable[str], withheld: Collection[str]) -> bool:
    """Of whatever has one of these feeds: an instrument, or candles, which keep `kraken+binance`. A key is
    named as `push:desk`, all of them as `push`."""
    if not withheld:
        return True
    named = {each for feed in feeds for each in feed.split("+") if each}
    return not any(is_covered(each, name) for each in named for name in withheld)


def is_covered(feed: str, withheld: str) -> bool:
    """A feed that takes the ticks of any key takes those of a withheld key too."""
    return feed == withheld or feed.startswith(f"{withheld}:") or withheld.startswith(f"{feed}:")


WITHHELD = "{symbol} is not offered: the terms of its source do not allow its data to be passed on."
OfferChange = Literal["activated", "deactivated"]

# Receivers are connected in the `ready` of rooms above.
offer_changed = Signal()
"""The `change` of these `symbols`: they are not offered any more, or are again."""
stored_sources_asked = Signal()
"""A receiver returns the sources of what is served of the `instrument` with this id."""


class ReadInstruments(NamedTuple):
    number: int
    """Of the reading: the later one is the newer one."""
    by_symbol: dict[str, InstrumentFacts]
    withheld: tuple[str, ...]


class Catalogue:
    """All instruments by symbol; reloaded when a control event says that one changed."""

    def __init__(self) -> None:
        self.by_symbol: dict[str, InstrumentFacts] = {}
        """Active or not."""
        self.withheld: tuple[str, ...] = ()
        """Sources whose data must not be passed on."""
        self._gone: set[str] = set()
        """Those that were offered once, or may yet be."""
        self._changed: set[str] = set()
        """Those whose change is not announced yet."""
        self._loads, self._shown, self._showing = itertools.count(1), 0, threading.Lock()

    def offered(self) -> list[InstrumentFacts]:
        """The active ones whose data may be passed on. The engine runs all that are active."""
        return [facts for facts in self.by_symbol.values() if facts.is_offered]

    def is_offered(self, symbol: str) -> bool:
        facts = self.by_symbol.get(symbol)
        return facts is not None and facts.is_offered

    def all(self) -> list[InstrumentFacts]:
        return list(self.by_symbol.values())

    def active(self) -> list[InstrumentFacts]:
        return [facts for facts in self.by_symbol.values() if facts.active]

    def known(self, symbol: str) -> InstrumentFacts | None:
        """By its exact symbol, active or not."""
        return self.by_symbol.get(symbol)

    def find(self, symbol: str) -> InstrumentFacts | None:
        """An active instrument by its exact symbol."""
        facts = self.by_symbol.get(symbol)
        return facts if facts is not None and facts.active else None

    def find_offered(self, symbol: str) -> InstrumentFacts | None:
        """One that is offered, by its exact symbol."""
        facts = self.by_symbol.get(symbol)
        return facts if facts is not None and facts.is_offered else None

    def get(self, symbol: str) -> InstrumentFacts:
        """One that is offered, whatever the case of its symbol."""
        facts = self.get_any(symbol)
        if facts.is_offered:
            return facts
        if not facts.active:
            raise self._unknown(symbol)
        raise SymbolNotFound(WITHHELD.format(symbol=facts.symbol), field="symbol")

    def get_any(self, symbol: str) -> InstrumentFacts:
        """Inactive ones too, because what was published about them stays readable."""
        # Only ASCII: "ı" and "ſ" become I and S in upper case.
        facts = self.by_symbol.get(symbol.upper()) if symbol.isascii() else None
        if facts is None:
            raise self._unknown(symbol)
        return facts

    async def load(self) -> None:
        found = await in_thread(self._read)
        # In one turn, so that nothing of what is offered again is sent before the notice.
        self._show(found)
        with self._showing:
            changed, self._changed = self._changed, set()
        come = {symbol for symbol in changed if self.is_offered(symbol)}
        changes: dict[OfferChange, set[str]] = {"deactivated": changed - come, "activated": come}
        for change, symbols in changes.items():
            if symbols:
                offer_changed.send(self, change=change, symbols=sorted(symbols))

    def load_now(self) -> None:
        self._show(self._read())

    def _read(self) -> ReadInstruments:
        number = next(self._loads)
        rows = Instrument.objects.select_related("calendar").order_by("symbol")
        withheld = tuple(WithheldSource.objects.values_list("name", flat=True))
        found = {row.symbol: _facts(row, is_withheld=self._is_withheld(row, withheld)) for row in rows}
        return ReadInstruments(number, found, withheld)

    def _show(self, read: ReadInstruments) -> None:
        """Two may load at once: what one read first never replaces what another read later."""
        with self._showing:
            if read.number < self._shown:
                return
            self._shown = read.number
            before, self.by_symbol, self.withheld = self.by_symbol, read.by_symbol, read.withheld
            ended, offered = _offered(before) - _offered(read.by_symbol), _offered(read.by_symbol)
            # A change that was undone in the meantime is not announced.
            self._changed ^= ended | (offered & self._gone)
            self._gone = (self._gone | ended | read.by_symbol.keys()) - offered

    def _is_withheld(self, row: Instrument, withheld: Collection[str]) -> bool:
        if not withheld:
            return False
        feeds = feeds_of(row.source, row.fallback, default_feed(settings.DEMO))
        # What a former source sent is served as well.
        answers = stored_sources_asked.send(self, instrument=row.pk)
        stored = [source for _, found in answers for source in found or ()]
        return not may_be_passed_on((*feeds, *stored), withheld)

    async def reload(self, _: dict[str, Any]) -> None:
        await self.load()

    def _unknown(self, symbol: str) -> SymbolNotFound:
        close = get_close_matches(symbol[:20].upper(), [facts.symbol for facts in self.offered()], n=1)
        hint = f"Did you mean {close[0]}?" if close else "GET /api/symbols lists all symbols."
        return SymbolNotFound(f"There is no such symbol. {hint}", field="symbol")


def _offered(by_symbol: dict[str, InstrumentFacts]) -> set[str]:
    return {symbol for symbol, facts in by_symbol.items() if facts.is_offered}


def _number(value: Decimal) -> float:
    """100000 rather than 100000.0, as people write contract sizes."""
    return int(value) if value == value.to_integral_value() else float(value)


def _facts(row: Instrument, *, is_withheld: bool) -> InstrumentFacts:
    calendar = row.calendar
    return InstrumentFacts(
        id=row.pk,
        symbol=row.symbol,
        name=row.name,
        type=row.type,
        pip_size=_number(row.pip_size),
        contract_size=_number(row.contract_size),
        margin_rate=_number(row.margin_rate),
        min_lot=_number(row.min_lot),
        max_lot=_number(row.max_lot),
        digits=row.digits,
        volume_kind=row.volume_kind,
        order_flow_source=row.order_flow_source,
        stale_after_s=row.stale_after_s,
        outlier_percent=float(row.outlier_percent),
        source=row.source,
        fallback=row.fallback,
        active=row.active,
        hours=calendar.hours(),
        timezone=calendar.timezone,
        sessions=calendar.sessions,
        holidays=calendar.holidays,
        is_offered=row.active and not is_withheld,
        is_withheld=is_withheld,
    )


catalogue = Catalogue()
