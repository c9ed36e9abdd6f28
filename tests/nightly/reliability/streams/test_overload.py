"""Row 37: more connections ask than can be served, while ticks flow."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from statistics import median
from typing import NamedTuple

import pytest

from tests.nightly.benchmarks.processes import cpu_s
from tests.nightly.reliability.clients import meters
from tests.nightly.reliability.clients.wrk import asking
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import Flow, StreamService, streaming

SYMBOL, TICKS_A_SECOND, LISTENERS = "LOADED", 20, 10
# Connections that keep the service just busy, and how many times as many come.
JUST_BUSY, TARGETS = 16, {2: 0.9, 10: 0.7}
FOR_S, ROUNDS, MOST_ROUNDS = 2, 3, 24
# Of the goodput of the processor's seconds: less by the clock is a service that waits.
BY_THE_CLOCK = 0.5
PATHS = {"from memory": f"/api/market/{SYMBOL}/quote", "from the database": "/api/signals"}


class Load(NamedTuple):
    goodput: float
    """Answers a second of the server's processor: what others do on this machine does not count."""
    by_the_clock: float
    refused: int


class Round(NamedTuple):
    """What can just be served, and then the overload: what else runs here changes from minute to minute."""

    just_busy: Load
    calm: meters.Heard
    overloaded: Load
    during: meters.Heard

    @property
    def left(self) -> float:
        return self.overloaded.goodput / self.just_busy.goodput

    @property
    def left_by_the_clock(self) -> float:
        return self.overloaded.by_the_clock / self.just_busy.by_the_clock

    @property
    def rise_ms(self) -> float:
        """Of the p99, beyond what it may."""
        return self.during.p99_ms - meters.allowed_ms(self.calm)


@pytest.fixture(scope="module")
def service(embedded_for_module: Installation) -> Iterator[StreamService]:
    with streaming(embedded_for_module, 1, [SYMBOL]) as running:
        yield running


def load(service: StreamService, path: str, key: str, connections: int) -> Load:
    server = service.servers[0]
    began_s, began_at = cpu_s(server.pid), time.monotonic()
    with asking(server.url + path, connections, FOR_S, f"X-API-Key: {key}") as asked:
        pass
    used_s, took_s = cpu_s(server.pid) - began_s, time.monotonic() - began_at
    return Load(asked.answered / used_s, asked.answered / took_s, asked.refused)


@pytest.mark.row(
    "37",
    "at twice the load 90% of the throughput per core, at ten times the load 70%, by wall-clock time half of"
    " that; p99 of ticks up by at most 10% and one push (50 ms) compared with the control of the same round;"
    " in the median round; no crash",
)
@pytest.mark.parametrize("times", TARGETS)
@pytest.mark.parametrize("kind", PATHS)
def test_an_overloaded_service_keeps_its_throughput(
    service: StreamService, kind: str, times: int, tell: Tell
) -> None:
    key, path = service.make_key(requests_per_minute=10**9), PATHS[kind]
    load(service, path, key, JUST_BUSY)
    subscribe = {"action": "subscribe", "symbols": [SYMBOL], "api_key": key, "features": ["seq"]}
    port, rounds = service.servers[0].port, list[Round]()
    with (
        Flow(service, TICKS_A_SECOND) as flow,
        meters.listening(port, "/ws/market", subscribe, LISTENERS) as meter,
    ):
        meter.take()
        while len(rounds) < ROUNDS or (len(rounds) < MOST_ROUNDS and not is_good(rounds, times)):
            just_busy, calm = load(service, path, key, JUST_BUSY), meter.take()
            overloaded = load(service, path, key, times * JUST_BUSY)
            rounds.append(Round(just_busy, calm, overloaded, meter.take()))
    tell(f"{kind}, {times} times {JUST_BUSY} connections: {told(rounds)}; ticks accepted: {flow.sent}")
    assert is_good(rounds, times)
    assert flow.sent > 0
    assert sum(each.during.missed for each in rounds) == 0
    assert service.servers[0].ask("/healthz").status_code == 200


def is_good(rounds: Sequence[Round], times: int) -> bool:
    """In the middle one of them."""
    return (
        median(each.left for each in rounds) >= TARGETS[times]
        and median(each.left_by_the_clock for each in rounds) >= BY_THE_CLOCK * TARGETS[times]
        and median(each.rise_ms for each in rounds) <= 0
    )


def told(rounds: Sequence[Round]) -> str:
    core, clock = median(each.left for each in rounds), median(each.left_by_the_clock for each in rounds)
    calm, during = median(each.calm.p99_ms for each in rounds), median(each.during.p99_ms for each in rounds)
    return (
        f"{core:.0%} of {median(each.just_busy.goodput for each in rounds):.0f} answers per second of a core,"
        f" {clock:.0%} by wall-clock time; refused: {sum(each.overloaded.refused for each in rounds)}; p99 of"
        f" ticks {calm:.0f} → {during:.0f} ms, median of {len(rounds)} rounds"
    )
