"""What was published of late, for clients that were away while one process gave way to the next. Pure."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable
from typing import NamedTuple

from market.prices.records import Absorbed, AnyRecord, Began, Taken

KEEP_MS, MAX_FRAMES = 120_000, 1_000
"""How long, and how many frames of a symbol, a stream can send again."""

Numbers = dict[str, tuple[int, int]]
"""By symbol the last number of its prices, and of its order flow."""


class Sent(NamedTuple):
    at_ms: int
    record: Taken | Absorbed


def _few() -> deque[Sent]:
    return deque(maxlen=MAX_FRAMES)


class Past:
    """Of each symbol, and in the order of its numbers, what the two streams were given."""

    def __init__(self) -> None:
        self.prices: defaultdict[str, deque[Sent]] = defaultdict(_few)
        self.flow: defaultdict[str, deque[Sent]] = defaultdict(_few)
        self.numbers: Numbers = {}
        self.ended: Numbers = {}
        """Where a series of the other kind began: the last numbers of the one before."""

    def add(self, at_ms: int, records: Iterable[AnyRecord]) -> None:
        for record in records:
            symbol = record.symbol
            seq, flow_seq = self.numbers.get(symbol, (0, 0))
            if isinstance(record, Taken):
                self.prices[symbol].append(Sent(at_ms, record))
                if record.flow_seq:
                    self.flow[symbol].append(Sent(at_ms, record))
                self.numbers[symbol] = record.seq, record.flow_seq or flow_seq
            elif isinstance(record, Absorbed):
                self.flow[symbol].append(Sent(at_ms, record))
                self.numbers[symbol] = seq, record.flow_seq
            elif isinstance(record, Began):
                # Nobody goes on over the beginning of another series without being told.
                self.prices.pop(symbol, None)
                self.flow.pop(symbol, None)
                self.ended[symbol] = seq, flow_seq


def falls_short(known: Numbers, given: Numbers) -> bool:
    """Whether numbers were given that are not known, and would be given again."""
    return any(
        seq > known.get(symbol, (0, 0))[0] or flow_seq > known.get(symbol, (0, 0))[1]
        for symbol, (seq, flow_seq) in given.items()
    )
