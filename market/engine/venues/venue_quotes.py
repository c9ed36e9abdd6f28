"""The state of one connection to a venue: its last quotes and the numbers of its trades."""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from math import isfinite

from core.times import EPOCH, MILLISECOND
from market.prices.records import StandingQuote, Tick

# A venue's two channels are not in step, and we stamp one that gives no times by our own clock. One may be
# behind the other by as much as the engine lets a clock run ahead.
OUT_OF_STEP_MS = 5_000
LONGEST_NAME = 40

MOST_UNQUOTED = 10_000
Unquoted = tuple[float, float, int, int, int | None]

# Of a longer hole only the last may still come out of order.
MOST_MISSING = 100


class VenueQuotes:
    """Makes ticks under our symbols from quotes and trades under the venue's. Bad ones are counted with their
    reason; what is no number is a ValueError."""

    def __init__(self, symbols: Mapping[str, str], refuse: Callable[[str, str], None]) -> None:
        """`symbols` are the venue's names by ours; several of ours may follow one of theirs."""
        self._refuse = refuse
        self._ours: dict[str, list[str]] = {}
        for ours, theirs in symbols.items():
            self._ours.setdefault(theirs, []).append(ours)
        self._bids_asks: dict[str, tuple[float, float]] = {}
        self.undated: dict[str, int | None] = {}
        """The numbers of the last quotes whose time is still unknown."""
        self._unquoted: defaultdict[str, deque[Unquoted]] = defaultdict(lambda: deque(maxlen=MOST_UNQUOTED))
        """Trades that came before any quote."""
        self._quoted_ms: dict[str, int] = {}
        self._traded_ms: dict[str, int] = {}
        self._trade_seqs: dict[str, int] = {}
        self._missing: dict[str, set[int]] = {}

    def quote(
        self,
        theirs: str,
        bid: float,
        ask: float,
        time_ms: int | None,
        seq: int | None = None,
        *,
        is_standing: bool = False,
    ) -> list[Tick]:
        ours = self._ours.get(theirs)
        if ours is None:
            return self._not_asked_for(theirs)
        _check((bid, ask))
        if bid > ask:
            self._refuse("crossed", f"quotes of {theirs} are crossed")
            return []
        self._bids_asks[theirs] = bid, ask
        if time_ms is None:
            self.undated[theirs] = seq
            return []
        self.undated.pop(theirs, None)
        waiting = self._unquoted.pop(theirs, ())
        before = [tick for trade in waiting for tick in self._traded(theirs, *trade)]
        if is_standing:
            return before + [StandingQuote(symbol, bid, ask, time_ms) for symbol in ours]
        time_ms = _in_step(time_ms, self._traded_ms.get(theirs))
        self._quoted_ms[theirs] = time_ms
        return before + [Tick(symbol, bid, ask, time_ms, source_seq=seq) for symbol in ours]

    def date_all(self, time_ms: int) -> list[Tick]:
        """The quotes that waited for a time."""
        waiting = list(self.undated.items())
        return [
            tick
            for theirs, seq in waiting
            for tick in self.quote(theirs, *self._bids_asks[theirs], time_ms, seq)
        ]

    def trade(self, theirs: str, price: float, size: float, side: int, time_ms: int, seq: int) -> list[Tick]:
        """Those before the first quote come with it: there is no bid and ask yet to show them with."""
        ours = self._ours.get(theirs)
        if ours is None:
            return self._not_asked_for(theirs)
        _check((price, size))
        # Of numbers, the engine takes only higher ones.
        number = None if self._note_number(theirs, seq) else seq
        if theirs not in self._bids_asks:
            self._unquoted[theirs].append((price, size, side, time_ms, number))
            return []
        return self._traded(theirs, price, size, side, time_ms, number)

    def _traded(
        self, theirs: str, price: float, size: float, side: int, time_ms: int, seq: int | None
    ) -> list[Tick]:
        time_ms = _in_step(_in_step(time_ms, self._quoted_ms.get(theirs)), self._traded_ms.get(theirs))
        self._traded_ms[theirs] = time_ms
        quoted = self._bids_asks[theirs]
        return [Tick(symbol, *quoted, time_ms, size, side, price, seq) for symbol in self._ours[theirs]]

    def _note_number(self, theirs: str, seq: int) -> bool:
        """Trades are numbered without holes; a hole is counted. Whether this one fills one, a moment late."""
        last, missing = self._trade_seqs.get(theirs), self._missing.setdefault(theirs, set())
        if last is None or seq > last:
            self._trade_seqs[theirs] = seq
            if last is not None and seq > last + 1:
                self._refuse("gap", f"trades of {theirs} are missing")
                missing.update(range(max(last + 1, seq - MOST_MISSING), seq))
            return False
        is_late = seq in missing
        missing.discard(seq)
        return is_late

    def _not_asked_for(self, theirs: str) -> list[Tick]:
        self._refuse("unknown_symbol", f"{theirs[:LONGEST_NAME]!r} came without being asked for")
        return []


def _check(numbers: Iterable[float]) -> None:
    for number in numbers:
        if not (isfinite(number) and number > 0):
            raise ValueError(f"{number} is not a price or a size")


def _in_step(time_ms: int, other_ms: int | None) -> int:
    """What comes later was not earlier, if the times of two channels are as good as the same."""
    if other_ms is not None and other_ms - OUT_OF_STEP_MS <= time_ms < other_ms:
        return other_ms
    return time_ms


def to_ms(text: str) -> int:
    """Truncated, never rounded up: a tick must not land in a minute that had not begun. Or ValueError."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError(f"{text!r} does not say its offset from UTC")
    # On the path of every tick.
    return (at - EPOCH) // MILLISECOND
