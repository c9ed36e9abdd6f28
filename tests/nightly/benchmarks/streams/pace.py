"""How fast the cores are at the moment.

Virtual ones share their silicon with strangers: the same work then takes up to twice as long, for seconds or
minutes, and nothing of the kernel's tells it from work of our own.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterable
from statistics import mean, median

# 0.06 ms each time, so that nobody who is measured waits for it.
WARM_UP, STEPS, EVERY_S = 300, 2_500, 0.1
# One that was interrupted says nothing.
MOST_S = 0.0005


class Pace:
    def __init__(self, cores: Iterable[int]) -> None:
        self._samples: dict[int, list[tuple[float, float]]] = {core: [] for core in cores}
        self._is_over = threading.Event()
        for core in self._samples:
            threading.Thread(target=self._watch, args=(core,), daemon=True).start()

    def stop(self) -> None:
        self._is_over.set()

    def slowed(self, since: float) -> float:
        """By how much the slower core was slower since then (`time.monotonic`) than it can be."""
        every = sorted(took for samples in self._samples.values() for _, took in samples)
        best = median(every[: len(every) // 10 + 1]) if every else 0
        means = [
            mean(took for _, took in recent)
            for samples in self._samples.values()
            if (recent := [sample for sample in samples if sample[0] >= since])
        ]
        return max(means) / best - 1 if means else 0.0

    def _watch(self, core: int) -> None:
        os.sched_setaffinity(0, {core})
        while not self._is_over.wait(EVERY_S):
            work(WARM_UP)
            start = time.thread_time()
            work(STEPS)
            took = time.thread_time() - start
            if took < MOST_S:
                self._samples[core].append((time.monotonic(), took))


def work(steps: int) -> int:
    total = 0
    for number in range(steps):
        total += number
    return total
