"""The rules for live ticks, over many ticks at once. A few passes over the columns prove that most batches
are good; only the others are judged tick by tick."""

from itertools import pairwise
from math import isfinite
from operator import eq, le, lt

from instruments.facts import InstrumentFacts
from market.engine.admission import TOO_HIGH, is_sent_again, reason_to_refuse
from market.prices.records import Tick

RefusedTicks = list[tuple[int, str]]
"""The index of a tick, and the reason."""


class BatchCheck:
    """Ticks in the order of their file."""

    def __init__(self, facts: InstrumentFacts, now_ms: int, before: Tick | None = None) -> None:
        """`before` ended the file before this one."""
        self._facts = facts
        self._now_ms = now_ms
        self._before = before
        self._last: Tick | None = None
        self._numbers: dict[bool, int] = {}
        """The last of the source's own numbers of quotes, and of trades."""

    def sift(self, ticks: list[Tick]) -> tuple[list[Tick], RefusedTicks]:
        """Those that are taken, and why others are not."""
        if ticks and self._before is not None:
            # An older file is none that goes on.
            self._last = self._before if self._before.time_ms <= ticks[0].time_ms else None
            self._before = None
        if ticks and self._are_all_good(ticks) and self._are_numbered_on(ticks):
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
            and all(tick.price is None or 1e-8 < tick.price < TOO_HIGH for tick in ticks)
            and not any(eq(*pair) for pair in pairwise(ticks))
        )

    def _are_numbered_on(self, ticks: list[Tick]) -> bool:
        """True only where no number comes again; notes them then."""
        if [tick.source_seq for tick in ticks].count(None) == len(ticks):
            return True
        noted = dict(self._numbers)
        for are_trades in (False, True):
            of_kind = [tick.source_seq for tick in ticks if (tick.side != 0) is are_trades]
            numbers = [-1 if number is None else number for number in of_kind]
            if not all(map(lt, [noted.get(are_trades, -1), *numbers], numbers)):
                return False
            if numbers:
                noted[are_trades] = numbers[-1]
        self._numbers = noted
        return True

    def _one_by_one(self, ticks: list[Tick]) -> tuple[list[Tick], RefusedTicks]:
        taken, refused = list[Tick](), RefusedTicks()
        for index, tick in enumerate(ticks):
            reason = self._reason_to_refuse(tick)
            if reason is None:
                taken.append(tick)
                self._last = tick
                if tick.source_seq is not None:
                    self._numbers[tick.side != 0] = tick.source_seq
            else:
                refused.append((index, reason))
        return taken, refused

    def _reason_to_refuse(self, tick: Tick) -> str | None:
        if is_sent_again(tick, self._numbers.get(tick.side != 0), self._last):
            return "duplicate"
        return reason_to_refuse(tick, self._last, None, self._facts, self._now_ms)
