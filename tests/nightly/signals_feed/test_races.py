"""A publisher who knows the true price a second before our feed shows it earns nothing by that. Seeded, so
that only a change of the rules changes a figure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal
from math import sqrt
from random import Random
from statistics import fmean, stdev

import pytest

from signals_feed.exits import Tick, paid_entry
from signals_feed.judge import CLOSED, judge
from signals_feed.record import Payload, iso
from tests.nightly.figures import note

RACES = 200_000
STEP_MS, AHEAD_MS, WAIT_MS = 100, 1_000, 1_000
START_MS = 1_764_000_000_000
AHEAD = AHEAD_MS // STEP_MS
SPREAD, MOVE, JUMP = 2, 1.5, 40.0
"""In points; moves are of a step."""
LONGEST = 6_000


class Race:
    """The true price in steps; our feed is late by as many as the publisher is ahead."""

    def __init__(self, seed: int, *, jumps: bool) -> None:
        self._dice, self._jumps = Random(seed), jumps
        self._true = [100_000.0]

    def true(self, step: int) -> int:
        while len(self._true) <= step:
            jump = self._dice.gauss(0, JUMP) if self._jumps and self._dice.random() < 0.02 else 0.0
            self._true.append(self._true[-1] + self._dice.gauss(0, MOVE) + jump)
        return round(self._true[step])

    def tick(self, step: int) -> Tick:
        bid, at_ms = self.true(step - AHEAD), START_MS + step * STEP_MS
        return Tick(Decimal(bid), Decimal(bid + SPREAD), at_ms, "e", step, at_ms, "kraken")

    def best_moment(self) -> tuple[int, int]:
        """When what is known and not shown yet is most, and on which side."""
        step = max(range(AHEAD, 10 * AHEAD), key=lambda each: abs(self._ahead(each)))
        return step, 1 if self._ahead(step) > 0 else -1

    def _ahead(self, step: int) -> int:
        return self.true(step) - self.true(step - AHEAD)

    def earned(self, rules: int) -> float:
        """In R, the spread added back."""
        step, sign = self.best_moment()
        shown = self.tick(step)
        entries = [*entries_of(shown, sign, rules)]
        ticks = self._ticks(step + 1)
        verdict = judge(entries, ticks, START_MS)
        assert verdict.state == CLOSED
        assert verdict.close is not None
        paid = Decimal(entries[0]["entry"])
        if verdict.fill is not None:
            paid = paid_entry(entries[0]["direction"], paid, Decimal(verdict.fill["fill_price"]))
        gained = sign * (Decimal(verdict.close["close_price"]) - paid) + SPREAD
        return float(gained / abs(paid - Decimal(entries[0]["stop_loss"])))

    def _ticks(self, step: int) -> Iterator[Tick]:
        yield from map(self.tick, range(step, step + LONGEST))


def entries_of(shown: Tick, sign: int, rules: int) -> Iterator[Payload]:
    entry = shown.ask if sign > 0 else shown.bid
    at = iso(shown.accepted_ms)
    quote = {"source": "tick", "rule": "quote", "at": iso(shown.time_ms), "epoch": "e", "seq": shown.seq}
    publish = {
        **{"kind": "publish", "direction": "buy" if sign > 0 else "sell", "entry": str(entry)},
        **{"stop_loss": str(entry - sign * 10), "take_profit": str(entry + sign * 15)},
        **{"published_at": at, "expires_at": iso(shown.time_ms + 10**9), "tradable_price": str(entry)},
        "evidence": quote | {"bid": str(shown.bid), "ask": str(shown.ask)},
    }
    if rules == 1:
        yield publish
        return
    yield publish | {"rules": 2, "written": at, "pip_size": "1", "stale_ms": 60_000}
    where = {"epoch": "e", "seq": shown.seq, "wait_ms": WAIT_MS, "unsettled_ms": 0}
    yield {"kind": "arm", "for": "fill", "number": 1, "at": at, "written": at, **where}


def interval(earned: Sequence[float]) -> tuple[float, float]:
    """Of the mean, at 95 %."""
    mean, about = fmean(earned), 1.96 * stdev(earned) / sqrt(len(earned))
    return mean - about, mean + about


@pytest.mark.parametrize("jumps", [False, True], ids=["random walk", "jumps"])
def test_who_is_a_second_ahead_earns_nothing(*, jumps: bool) -> None:
    races = RACES // 2
    _, most = interval([Race(seed, jumps=jumps).earned(2) for seed in range(races)])
    least, _ = interval([Race(seed, jumps=jumps).earned(1) for seed in range(races // 20)])
    measured = f"{most:.4f} R; by the rules of before at least {least:.2f} R"
    is_held = most <= 0.02 and least > 0.2
    figure = f"A publisher a second ahead, {'with jumps' if jumps else 'on a random walk'}, earns"
    note(
        figure,
        "at most 0.02 R; control over 0.2 R",
        measured,
        held=is_held,
    )
    assert is_held, measured
