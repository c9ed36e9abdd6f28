"""One run of the load client, and what it saw."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
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
