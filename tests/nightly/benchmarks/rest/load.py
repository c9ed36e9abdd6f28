"""wrk on the client's core: requests per second, latency, and whether that core was the limit."""

from __future__ import annotations

import re
import resource
import subprocess
import time

import msgspec

from tests.nightly.benchmarks.processes import CLIENT_CORE, Peer

UNITS = {"us": 0.001, "ms": 1.0, "s": 1000.0}


class Load(msgspec.Struct, frozen=True):
    """What one run of wrk saw."""

    per_second: float
    p50_ms: float
    p99_ms: float
    per_cpu_second: float
    """Requests for each second of the server's processor time: other work on the machine changes it least."""
    server_busy: float
    """Share of its core that the server had; below 1 while others used the core too."""
    client_busy: float
    """Share of its core that wrk used; near 1 it was wrk that we measured."""


def measure(peer: Peer, path: str, key: str, seconds: int, connections: int, *options: str) -> Load:
    """One run against a peer that is awake; every answer must be a success."""
    wrk = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--latency", "-H", f"X-API-Key: {key}"]
    command = ["taskset", "-c", str(CLIENT_CORE), *wrk, *options, peer.url + path]
    server_before, client_before, started_at = peer.cpu_s(), children_cpu_s(), time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 30, check=True)
    took_s, client_s = time.monotonic() - started_at, children_cpu_s() - client_before
    server_s, said = peer.cpu_s() - server_before, done.stdout
    if "Non-2xx" in said or "Socket errors" in said:
        raise RuntimeError(f"{peer.name} refused {path}:\n{said}")
    return Load(
        per_second=float(found(r"Requests/sec:\s+([\d.]+)", said)[0]),
        p50_ms=latency_ms("50", said),
        p99_ms=latency_ms("99", said),
        per_cpu_second=int(found(r"(\d+) requests in", said)[0]) / server_s,
        server_busy=server_s / took_s,
        client_busy=client_s / took_s,
    )


def children_cpu_s() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def latency_ms(percentile: str, said: str) -> float:
    value, unit = found(rf"{percentile}%\s+([\d.]+)(us|ms|s)", said)
    return float(value) * UNITS[unit]


def found(pattern: str, said: str) -> tuple[str, ...]:
    match = re.search(pattern, said)
    if match is None:
        raise RuntimeError(f"wrk said nothing of {pattern}:\n{said}")
    return match.groups()
