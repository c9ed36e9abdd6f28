"""What a web process need not look at when it comes: records of symbols that nobody wants."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Sequence
from itertools import islice

from market.prices.records import AnyRecord

from .journal import KEEP_MS

WANTED_S, APART_S = 10.0, 1.0
"""A symbol is wanted for the longer time when somebody looks twice, at most and at least so far apart."""
LOOK_S = 1.0
LOOKED_AT_ONCE = 4

# Enough to be folded cheaply, and few enough to be still in the processor's cache.
MOST_PUT_OFF = 100

FollowedSymbols = Callable[[], Collection[str] | None]
"""Those that clients follow now; None: all."""


class WantedSymbols:
    """Those that clients follow or ask for again and again. Who looks once in a while, as metrics do, finds
    what there is, and no tick is taken in at once because of that."""

    def __init__(self, followed: FollowedSymbols) -> None:
        self._followed = followed
        self._looked_s: dict[str, float] = {}
        self._until_s: dict[str, float] = {}
        self._checked_s = 0.0
        self.has_all = False

    def __contains__(self, symbol: str) -> bool:
        return self.has_all or symbol in self._until_s

    @property
    def are_none(self) -> bool:
        return not self.has_all and not self._until_s

    def look(self, symbol: str, now_s: float) -> None:
        """From any thread."""
        passed_s = now_s - self._looked_s.get(symbol, 0.0)
        if passed_s > APART_S:
            self._looked_s[symbol] = now_s
            if passed_s <= WANTED_S:
                self.follow(symbol, now_s)

    def follow(self, symbol: str, now_s: float) -> None:
        self._until_s[symbol] = now_s + WANTED_S

    def check(self, now_s: float) -> None:
        """Once in a while, which of them are wanted no longer."""
        if now_s - self._checked_s < LOOK_S:
            return
        self._checked_s, followed = now_s, self._followed()
        self.has_all = followed is None
        for symbol, until_s in list(self._until_s.items()):
            if until_s < now_s and followed is not None and symbol not in followed:
                self._until_s.pop(symbol, None)


class PutOff:
    """The records of one symbol, in their order."""

    __slots__ = ("came_ms", "records")

    def __init__(self) -> None:
        self.records: list[AnyRecord] = []
        self.came_ms: list[int] = []

    def is_too_much(self, now_ms: int) -> bool:
        """Nobody is sent again what is older."""
        return bool(self.records) and (
            len(self.records) >= MOST_PUT_OFF or self.came_ms[0] < now_ms - KEEP_MS
        )


class PutOffRecords:
    """By symbol; a symbol that is wanted is not among them."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, PutOff] = OrderedDict()

    def __contains__(self, symbol: str) -> bool:
        return symbol in self._of

    @property
    def symbols(self) -> list[str]:
        return [*self._of]

    def sift(self, records: Sequence[AnyRecord], wanted: WantedSymbols, now_ms: int) -> list[AnyRecord]:
        """Puts off what it may, and returns the others."""
        if wanted.has_all and not self._of:
            return list(records)
        known, others = self._of.get, list[AnyRecord]()
        for record in records:
            put_off = known(record.symbol)
            if put_off is None:
                # The engine speaks of itself without a symbol.
                if not record.symbol or record.symbol in wanted:
                    others.append(record)
                    continue
                put_off = self._of[record.symbol] = PutOff()
            put_off.records.append(record)
            put_off.came_ms.append(now_ms)
        return others

    def take(self, symbol: str) -> PutOff | None:
        return self._of.pop(symbol, None)

    def take_too_much(self, now_ms: int) -> list[tuple[str, PutOff]]:
        """Looks at a few symbols; the others have their turn at the next calls."""
        found = []
        for symbol, put_off in list(islice(self._of.items(), LOOKED_AT_ONCE)):
            self._of.move_to_end(symbol)
            if put_off.is_too_much(now_ms):
                self._of[symbol] = PutOff()
                found.append((symbol, put_off))
        return found

    def clear(self) -> None:
        self._of.clear()
