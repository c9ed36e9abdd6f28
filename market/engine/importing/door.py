"""The live door's rules over many ticks at once. Pure.

Most batches hold nothing to refuse, and a few passes over their columns prove it; only the others are
judged tick by tick."""

from __future__ import annotations

from itertools import pairwise
from math import isfinite
from operator import eq, le
from typing import TYPE_CHECKING

from market.engine.checks import TOO_HIGH, reason_to_refuse
from market.prices.ticks import Tick

if TYPE_CHECKING:
    from instruments.catalogue import InstrumentFacts

Refused = list[tuple[int, str]]
"""The index of a tick, and the reason."""


class Door:
    """Ticks in the order of their file."""

    def __init__(self, facts: InstrumentFacts, now_ms: int) -> None:
        self._facts = facts
        self._now_ms = now_ms
        self._last: Tick | None = None

    def sift(self, ticks: list[Tick]) -> tuple[list[Tick], Refused]:
        """Those that are taken, and why others are not."""
        if ticks and self._are_all_good(ticks):
            self._last = ticks[-1]
            return ticks, []
        return self._one_by_one(ticks)

    def _are_all_good(self, ticks: list[Tick]) -> bool:
        """True only where `reason_to_refuse` would have none for each of them."""
        times, bids = [tick.time_ms for tick in ticks], [tick.bid for tick in ticks]
        asks, volumes = [tick.ask for tick in ticks], [tick.volume for tick in ticks]
        session = self._facts.hours.session_at(times[0])
        return (
            (self._last is None or self._last.time_ms < times[0])
            and session is not None
            and times[-1] < session[1]
            and times[-1] <= self._now_ms
            and all(map(le, times, times[1:]))
            # No comparison with NaN is true, so what follows compares numbers.
            and all(map(le, bids, asks))
            and round(min(bids), self._facts.digits) > 0
            and max(asks) < TOO_HIGH
            and isfinite(sum(volumes))
            and min(volumes) >= 0
            and max(volumes) < TOO_HIGH
            and not any(eq(*pair) for pair in pairwise(ticks))
        )

    def _one_by_one(self, ticks: list[Tick]) -> tuple[list[Tick], Refused]:
        taken, refused = list[Tick](), Refused()
        for index, tick in enumerate(ticks):
            reason = reason_to_refuse(tick, self._last, None, self._facts, self._now_ms)
            if reason is None:
                taken.append(tick)
                self._last = tick
            else:
                refused.append((index, reason))
        return taken, refused
