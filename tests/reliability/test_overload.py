"""Row 37: more connections ask than can be served, while ticks flow."""

from __future__ import annotations

import os
import re
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest
from pytest_django import DjangoDbBlocker

from tests.debian import require_debian
from tests.reliability import meters
from tests.reliability.conftest import Tell, longer
from tests.reliability.processes import Installation
from tests.reliability.stream_services import StreamService, streaming

SYMBOL = "LOADED"
# Connections that keep the service just busy, and how many times as many come.
JUST_BUSY, TARGETS = 16, {2: 0.9, 10: 0.7}
LISTENERS = 10
FOR_S, ROUNDS, MOST_ROUNDS, TICK_EVERY_S = 2, longer(2, 3), 10, 0.1
PATHS = {"from memory": f"/api/market/{SYMBOL}/quote", "from the database": "/api/signals"}


class Load(NamedTuple):
    answered: int
    """With 200."""
    refused: int
    cpu_s: float
    """That the server used for it."""

    @property
    def goodput(self) -> float:
        """A second of the server's processor: what others do on this machine does not count."""
        return self.answered / self.cpu_s


@pytest.fixture(scope="module")
def service(embedded_for_module: Installation, django_db_blocker: DjangoDbBlocker) -> Iterator[StreamService]:
    with django_db_blocker.unblock(), streaming(embedded_for_module, 1, [SYMBOL]) as running:
        yield running


def ask(service: StreamService, path: str, key: str, connections: int) -> Load:
    command = [require_debian("wrk"), "-t1", f"-c{connections}", f"-d{FOR_S}s", "-H", f"X-API-Key: {key}"]
    url = service.servers[0].url + path
    pid = service.servers[0].pid
    began_s = cpu_s(pid)
    said = subprocess.run([*command, url], capture_output=True, text=True, check=True, timeout=60).stdout
    used_s = cpu_s(pid) - began_s
    asked = re.search(r"(\d+) requests in", said)
    refused = re.search(r"Non-2xx or 3xx responses: (\d+)", said)
    assert asked is not None, said
    bad = int(refused[1]) if refused else 0
    return Load(int(asked[1]) - bad, bad, used_s)


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


@pytest.mark.row("37", "goodput 90 % at twice the load and 70 % at ten times, ticks p99 as before, crash 0")
@pytest.mark.parametrize("times", TARGETS)
@pytest.mark.parametrize("kind", PATHS)
def test_overload_leaves_what_can_be_served(
    service: StreamService, kind: str, times: int, tell: Tell
) -> None:
    key, path = service.make_key(requests_per_minute=10**9), PATHS[kind]
    ask(service, path, key, JUST_BUSY)
    just_busy, overloaded = [], []
    ticks_before, ticks = [], []
    subscribe = {"action": "subscribe", "symbols": [SYMBOL], "api_key": key}
    port = service.servers[0].port
    with ticking(service) as taken, meters.listening(port, "/ws/market", subscribe, LISTENERS) as meter:
        meter.take()
        for number in range(MOST_ROUNDS):
            just_busy.append(ask(service, path, key, JUST_BUSY))
            ticks_before.append(meter.take())
            overloaded.append(ask(service, path, key, times * JUST_BUSY))
            ticks.append(meter.take())
            # What else runs on this machine changes from one minute to the next: each is compared with the
            # one just before it.
            left = median(each.goodput / one.goodput for each, one in zip(overloaded, just_busy, strict=True))
            best = min(ticks, key=lambda heard: heard.p99_ms)
            is_good = left >= TARGETS[times] and meters.unharmed(best, *ticks_before)
            if number + 1 >= ROUNDS and is_good:
                break
    refused = sum(load.refused for load in overloaded)
    calm = min(ticks_before, key=lambda heard: heard.p99_ms)
    tell(f"ticks p99 {calm.p99_ms:.0f} → {best.p99_ms:.0f} ms, missed {sum(heard.missed for heard in ticks)}")
    tell(
        f"{kind}, {times} times {JUST_BUSY} connections: {left:.0%} of {just_busy[-1].goodput:.0f} answers"
        f" a second of a core, refused {refused}; ticks taken {sum(taken)} of {len(taken)}"
    )
    assert left >= TARGETS[times]
    assert meters.unharmed(best, *ticks_before)
    assert all(taken)
    assert service.servers[0].ask("/healthz").status_code == 200
