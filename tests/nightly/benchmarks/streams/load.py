"""One run of the load client, what it saw, and how fast the cores are at the moment. Virtual ones share their
silicon with strangers: the same work then takes up to twice as long, for seconds or minutes, and nothing of
the kernel's tells it from work of our own."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterable, Mapping
from statistics import mean, median
from typing import NamedTuple

import msgspec

from tests.nightly.benchmarks.processes import CLIENT_CORE

from .places import LOAD

# Beyond what was asked for: connecting, settling, waiting for the last.
PATIENCE_S = 120
MOST_WAITED, MOST_SLOWED = 0.03, 0.2


class Target(NamedTuple):
    """A server that runs and waits for clients and ticks."""

    port: int
    tick_port: int
    pids: tuple[int, ...]
    """All that work for it on its core."""
    options: Mapping[str, object] = {}


class Load(msgspec.Struct, frozen=True):
    messages_per_s: float
    messages_per_cpu_s: float
    """For each second of the servers' processor time."""
    p50_ms: float
    p99_ms: float
    server_busy: float
    client_busy: float
    """Share of its core that the client used; near 1 it is the client that was measured."""
    waited: float
    """Share of the time in which client or server would have run and others had the core."""
    missing: int
    wrong: int
    ended: int
    connection_kb: float
    beats: int
    """Heartbeats that every client got, and more."""
    ticks_a_read: float = 0
    """That a client found together when it was woken."""
    slowed: float = 0
    """By how much the cores were slower than they can be."""

    @property
    def disturbance(self) -> float:
        return max(self.waited / MOST_WAITED, self.slowed / MOST_SLOWED)

    @property
    def is_disturbed(self) -> bool:
        return self.disturbance > 1


def measure(target: Target, options: Mapping[str, float]) -> Load:
    everything = {
        "port": target.port,
        "tick_port": target.tick_port,
        "pids": ",".join(map(str, target.pids)),
        **target.options,
        **options,
    }
    words = [f"{name}={value}" for name, value in everything.items()]
    patience_s = PATIENCE_S + sum(options.get(name, 0) for name in ("warm", "seconds", "hold"))
    command = ["taskset", "-c", str(CLIENT_CORE), str(LOAD), *words]
    done = subprocess.run(command, capture_output=True, text=True, timeout=patience_s)
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr[-1000:]}")
    load = msgspec.json.decode(done.stdout, type=Load)
    if load.wrong:
        raise RuntimeError(f"{load.wrong} messages came to the wrong client, twice or in the wrong order.")
    return load


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
