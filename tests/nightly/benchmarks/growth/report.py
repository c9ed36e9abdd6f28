"""How much dearer the same work becomes where there is more of everything else."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import NamedTuple

from tests.nightly.benchmarks.tables import markdown, spread

GOAL = 1.10
# What is the same work differs by a tenth from one run to the next while others share the silicon, and what
# grows with the number of instruments or clients multiplies: a fault is far beyond this.
FLOOR = 1.35
# Answers of hundreds of megabytes come from memory and not from a cache, which no server changes.
FLOOR_OUT_OF_CACHE = 2.0


class Growth(NamedTuple):
    what: str
    sizes: Sequence[str]
    costs: Sequence[Sequence[float]]
    """Microseconds of the server's processor time, for each size one a round."""
    peer: Sequence[Sequence[float]] = ()
    """The same of a server in C that does nothing else: what the kernel takes for more sockets is in it."""
    floor: float = FLOOR

    @property
    def grew(self) -> list[float]:
        """From the first size to the last, one a round."""
        return ratios(self.costs[-1], self.costs[0])

    @property
    def peer_grew(self) -> list[float]:
        return ratios(self.peer[-1], self.peer[0]) if self.peer else []

    @property
    def judged(self) -> float:
        """What is not the kernel's: the growth, or where that is less, the growth beside the peer's."""
        own = median(self.grew)
        return min(own, own / median(self.peer_grew)) if self.peer else own


def ratios(later: Sequence[float], earlier: Sequence[float]) -> list[float]:
    return [one / other for one, other in zip(later, earlier, strict=True)]


def table(growths: Sequence[Growth]) -> str:
    rows = [["", "µs each", "grew to", "C grew to", f"judged, goal ≤ {GOAL:.2f}", ""]]
    for growth in growths:
        each = zip(growth.sizes, growth.costs, strict=True)
        costs = " · ".join(f"{size}: {spread(costs)}" for size, costs in each)
        peer = spread(growth.peer_grew) if growth.peer else "–"
        verdict = "reached" if round(growth.judged, 2) <= GOAL else "**missed**"
        rows.append([growth.what, costs, spread(growth.grew), peer, f"{growth.judged:.2f}", verdict])
    return markdown(rows)
