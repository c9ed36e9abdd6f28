"""Rows 9 to 11: clients that do not read are ended, cost little, and the others notice nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from tests.nightly.reliability.clients.meters import Trial, listening, tried
from tests.reliability.clients.deaf import Deaf, served_by, stop_reading
from tests.reliability.clients.measures import Memory
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import Flow, StreamService, streaming
from tests.serving.websocket.wires import TEXT, masked

SYMBOLS = [f"SLOW{number}" for number in range(10)]
PATH, TICKS_A_SECOND = "/ws/market", 1_200
HEALTHY, DEAF, BEFORE_S, CLOSED_WITHIN_S = 20, 40, 4.0, 10.0
# The healthy hear one symbol of ten: the service and those who do not read share two cores with them.
CROWD, DEAF_OF_CROWD, HEARD_SYMBOLS = 1_000, 200, 1
# A byte of a message that never ends, at once and every eight seconds.
SAID, SAID_EVERY_S = masked(TEXT, b'{"action":"ping"}'), 8.0


@pytest.fixture(scope="module", params=["embedded", "scaled"])
def service(request: pytest.FixtureRequest) -> Iterator[StreamService]:
    name = "embedded_for_module" if request.param == "embedded" else "scaled"
    installation: Installation = request.getfixturevalue(name)
    with streaming(installation, 1, SYMBOLS) as running:
        yield running


@pytest.fixture
def message(service: StreamService) -> dict[str, Any]:
    features = ["seq", "lag"]
    return {"action": "subscribe", "symbols": SYMBOLS, "api_key": service.make_key(), "features": features}


class Case:
    """Some who read, in C, some who do not, and what it came to."""

    def __init__(self, service: StreamService, message: dict[str, Any]) -> None:
        self._server, self._message = service.servers[0], message
        self.closed_s: list[float] = []
        self.grown_mib = 0.0
        self.trials: list[Trial] = []

    def run(self, healthy: int, deaf: int, *, is_chatty: bool) -> None:
        self.trials = tried(lambda: self._try(healthy, deaf, is_chatty=is_chatty))

    def _try(self, healthy: int, deaf: int, *, is_chatty: bool) -> Trial:
        message = self._message | {"symbols": SYMBOLS[:HEARD_SYMBOLS]}
        with listening(self._server.port, PATH, message, healthy) as meter:
            time.sleep(BEFORE_S)
            before = meter.take()
            asyncio.run(self._attack(deaf, is_chatty=is_chatty))
            during = meter.take()
            time.sleep(BEFORE_S)
            return Trial(before, during, meter.take())

    async def _attack(self, deaf: int, *, is_chatty: bool) -> None:
        memory = Memory(self._server.pid)
        watching = asyncio.create_task(memory.watch())
        idle = [await stop_reading(self._server.port, PATH, self._message) for _ in range(deaf)]
        self.closed_s += await until_ended(self._server.port, idle, is_chatty=is_chatty)
        watching.cancel()
        self.grown_mib = max(self.grown_mib, memory.grown_mib)
        for one in idle:
            one.close()

    @property
    def lost(self) -> int:
        return sum(trial.lost for trial in self.trials)

    @property
    def heard(self) -> int:
        return sum(trial.during.frames for trial in self.trials)

    @property
    def p99(self) -> str:
        """Before, meanwhile and after."""
        return "; ".join(map(str, self.trials))


async def until_ended(port: int, idle: list[Deaf], *, is_chatty: bool) -> list[float]:
    """After how many seconds each was ended; they are waited for twice as long as it may take."""
    began_at, number = time.monotonic(), 0
    left, closed_s = {one.port: one for one in idle}, []
    while left and (lasted_s := time.monotonic() - began_at) < 2 * CLOSED_WITHIN_S:
        if is_chatty and lasted_s >= SAID_EVERY_S * (number):
            for one in left.values():
                one.say(SAID[number : number + 1])
            number += 1
        for gone in left.keys() - await asyncio.to_thread(served_by, port):
            closed_s.append(time.monotonic() - left.pop(gone).began_at)
        await asyncio.sleep(0.2)
    return closed_s + [2 * CLOSED_WITHIN_S] * len(left)


@pytest.mark.row(
    "9, 10",
    "disconnected within 10 s; at most 1.5 MiB each; p99 of other clients up by at most "
    "10% and one push (50 ms); nothing lost to them",
)
@pytest.mark.parametrize("is_chatty", [False, True], ids=["silent", "chatty"])
def test_clients_that_never_read_are_disconnected_at_little_cost(
    service: StreamService, message: dict[str, Any], tell: Tell, is_chatty: bool
) -> None:
    case = Case(service, message)
    with Flow(service, TICKS_A_SECOND):
        case.run(HEALTHY, DEAF, is_chatty=is_chatty)
    each = case.grown_mib / DEAF
    tell(f"{DEAF} clients: slowest close {max(case.closed_s):.1f} s, memory {each:.2f} MiB each")
    tell(f"p99 of {HEALTHY} others before, during and after: {case.p99}; lost to them: {case.lost}")
    assert max(case.closed_s) <= CLOSED_WITHIN_S
    assert each <= 1.5
    assert case.lost == 0
    assert case.trials[-1].is_unharmed


@pytest.mark.row(
    "11",
    "nothing lost to healthy clients; p99 up by at most 10% and one push (50 ms); at most "
    "300 MiB more memory",
)
def test_two_hundred_clients_that_never_read_do_not_harm_the_others(
    service: StreamService, message: dict[str, Any], tell: Tell
) -> None:
    case, healthy = Case(service, message), CROWD - DEAF_OF_CROWD
    with Flow(service, TICKS_A_SECOND) as flow:
        case.run(healthy, DEAF_OF_CROWD, is_chatty=False)
    tell(
        f"{flow.sent:,} ticks, {case.heard:,} frames received by {healthy} others meanwhile; lost:"
        f" {case.lost}"
    )
    tell(f"p99 before, during and after: {case.p99}; memory +{case.grown_mib:.0f} MiB")
    assert case.lost == 0
    assert case.grown_mib <= 300
    assert case.trials[-1].is_unharmed
