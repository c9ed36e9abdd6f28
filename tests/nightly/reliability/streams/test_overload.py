"""Row 37: more connections ask than can be served, while ticks flow."""

from __future__ import annotations

import os
import re
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest
from pytest_django import DjangoDbBlocker

from tests.nightly.reliability.clients import meters
from tests.patience import PATIENCE_S
from tests.programs.debian import require_debian
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import StreamService, streaming

SYMBOL = "LOADED"
# Connections that keep the service just busy, and how many times as many come.
JUST_BUSY, TARGETS = 16, {2: 0.9, 10: 0.7}
LISTENERS = 10
FOR_S, ROUNDS, MOST_ROUNDS, TICK_EVERY_S = 2, 3, 24, 0.05
# Of the goodput of the processor's seconds: less by the clock is a service that waits.
BY_THE_CLOCK = 0.5
PATHS = {"from memory": f"/api/market/{SYMBOL}/quote", "from the database": "/api/signals"}


class Load(NamedTuple):
    answered: int
    """With 200."""
    refused: int
    cpu_s: float
    """That the server used for it."""
    took_s: float

    @property
    def goodput(self) -> float:
        """A second of the server's processor: what others do on this machine does not count."""
        return self.answered / self.cpu_s

    @property
    def goodput_by_the_clock(self) -> float:
        return self.answered / self.took_s


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
        return self.overloaded.goodput_by_the_clock / self.just_busy.goodput_by_the_clock

    @property
    def rise_ms(self) -> float:
        """Of the p99, beyond what it may."""
        return self.during.p99_ms - meters.allowed_ms(self.calm)


@pytest.fixture(scope="module")
def service(embedded_for_module: Installation, django_db_blocker: DjangoDbBlocker) -> Iterator[StreamService]:
    with django_db_blocker.unblock(), streaming(embedded_for_module, 1, [SYMBOL]) as running:
        yield running


def ask(service: StreamService, path: str, key: str, connections: int) -> Load:
    command = [require_debian("wrk"), "-t1", f"-c{connections}", f"-d{FOR_S}s", "-H", f"X-API-Key: {key}"]
    url = service.servers[0].url + path
    pid = service.servers[0].pid
    began_s, began_at = cpu_s(pid), time.monotonic()
    said = subprocess.run(
        [*command, url], capture_output=True, text=True, check=True, timeout=PATIENCE_S
    ).stdout
    used_s, took_s = cpu_s(pid) - began_s, time.monotonic() - began_at
    asked = re.search(r"(\d+) requests in", said)
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    assert asked is not None, said
    bad = int(refused[1]) if refused else 0
    return Load(int(asked[1]) - bad, bad, used_s, took_s)


def cpu_s(pid: int) -> float:
    """Of a process, all its threads."""
    after_name = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, after_name[11:13])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def ticking(service: StreamService) -> Iterator[list[bool]]:
    """Whether each tick was taken, while the context lasts."""
    taken: list[bool] = []
    over = threading.Event()

    def tick() -> None:
        while not over.wait(TICK_EVERY_S):
            taken.append(service.push(service.make_ticks([SYMBOL])))

    thread = threading.Thread(target=tick)
    thread.start()
    try:
        yield taken
    finally:
        over.set()
        thread.join()


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
    ask(service, path, key, JUST_BUSY)
    subscribe = {"action": "subscribe", "symbols": [SYMBOL], "api_key": key, "features": ["seq"]}
    port, rounds = service.servers[0].port, list[Round]()
    with ticking(service) as taken, meters.listening(port, "/ws/market", subscribe, LISTENERS) as meter:
        meter.take()
        while len(rounds) < ROUNDS or (len(rounds) < MOST_ROUNDS and not is_good(rounds, times)):
            just_busy, calm = ask(service, path, key, JUST_BUSY), meter.take()
            rounds.append(Round(just_busy, calm, ask(service, path, key, times * JUST_BUSY), meter.take()))
    tell(f"{kind}, {times} times {JUST_BUSY} connections: {told(rounds)}; ticks accepted: {sum(taken)}")
    assert is_good(rounds, times)
    assert all(taken)
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
    core, clock = (
        median(each.left for each in rounds),
        median(each.left_by_the_clock for each in rounds),
    )
    answers = median(each.just_busy.goodput for each in rounds)
    calm, during = (median(heard) for heard in zip(*(p99(each) for each in rounds), strict=True))
    return (
        f"{core:.0%} of {answers:.0f} answers per second of a core, {clock:.0%} by wall-clock time; refused:"
        f" {sum(each.overloaded.refused for each in rounds)}; p99 of ticks {calm:.0f} → {during:.0f} ms,"
        f" median of {len(rounds)} rounds"
    )


def p99(each: Round) -> tuple[float, float]:
    return each.calm.p99_ms, each.during.p99_ms
