"""Rows 6 and 14: hundreds of clients lose their service at once, and what they then have heard."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker

from tests.patience import PATIENCE_S
from tests.reliability.clients.measures import percentile
from tests.reliability.clients.swarm import Returning
from tests.reliability.conftest import Tell
from tests.reliability.services.flow import Flow
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import StreamService, streaming

SYMBOLS = [f"STORM{number}" for number in range(4)]
PATH, TICKS_A_SECOND, CALM_S = "/ws/market", 40, 0.5
KICKED, KICKS, CROWD = 500, 20, 1_000
RESUMED_WITHIN_S = 5.0
pytestmark = pytest.mark.usefixtures("rows")


@pytest.fixture(scope="module")
def service(scaled: Installation, django_db_blocker: DjangoDbBlocker) -> Iterator[StreamService]:
    with django_db_blocker.unblock(), streaming(scaled, 2, SYMBOLS) as running:
        yield running


def message_of(service: StreamService) -> dict[str, Any]:
    features = ["seq", "lag"]
    return {"action": "subscribe", "symbols": SYMBOLS, "api_key": service.make_key(), "features": features}


class Crowd:
    def __init__(self, message: dict[str, Any], count: int) -> None:
        self.clients = [Returning(PATH, message) for _ in range(count)]

    async def come(self, clients: Sequence[Returning], ports: Sequence[int]) -> None:
        turns = [client.come(ports[number % len(ports)]) for number, client in enumerate(clients)]
        await asyncio.gather(*turns)

    async def go(self, clients: Sequence[Returning]) -> None:
        await asyncio.gather(*(client.go() for client in clients))

    async def until_all_heard_the_last(self, flow: Flow) -> None:
        """Or long enough: who is behind then is missing something."""
        ends_at = asyncio.get_running_loop().time() + PATIENCE_S
        flow.stop()
        while len(self.places()) > 1 and asyncio.get_running_loop().time() < ends_at:  # noqa: ASYNC110
            await asyncio.sleep(0.1)

    def places(self) -> set[tuple[tuple[bytes, int], ...]]:
        """One, if all have heard the same."""
        sessions = [client.session for client in self.clients if client.session is not None]
        return {tuple(sorted(session.positions.items())) for session in sessions}

    def told(self, places: int) -> str:
        missed = sum(client.missed for client in self.clients)
        unrecovered = sum(client.unrecovered for client in self.clients)
        returns = sum(len(client.back_s) - 1 for client in self.clients)
        return (
            f"gaps or duplicates: {missed}, not recovered: {unrecovered}, distinct final positions: {places};"
            f" p99 of {returns:,} reconnections {self.p99_back_s():.2f} s, of first connections"
            f" {self.p99_first_s():.2f} s"
        )

    def p99_back_s(self) -> float:
        return percentile([seconds for client in self.clients for seconds in client.back_s[1:]], 0.99)

    def p99_first_s(self) -> float:
        """Of coming for the first time: what so many at once take on this machine."""
        return percentile([client.back_s[0] for client in self.clients], 0.99)

    @property
    def faults(self) -> int:
        return sum(client.missed + client.unrecovered for client in self.clients)


@pytest.mark.row("14", "no gaps, no duplicates, every client recovers")
def test_five_hundred_clients_disconnected_twenty_times_miss_nothing(
    service: StreamService, tell: Tell
) -> None:
    ports = [server.port for server in service.servers]
    crowd = Crowd(message_of(service), KICKED)

    async def run(flow: Flow) -> int:
        await crowd.come(crowd.clients, ports)
        for kick in range(KICKS):
            await asyncio.sleep(CALM_S)
            await crowd.go(crowd.clients)
            # Every other time at the other process.
            await crowd.come(crowd.clients, ports if kick % 2 else ports[::-1])
        await crowd.until_all_heard_the_last(flow)
        places = len(crowd.places())
        await crowd.go(crowd.clients)
        return places

    with Flow(service, TICKS_A_SECOND) as flow:
        places = asyncio.run(run(flow))
    tell(f"{flow.sent:,} ticks; {crowd.told(places)}")
    assert (crowd.faults, places) == (0, 1)


@pytest.mark.row("6", "nothing lost without notice; p99 of resuming at most 5 s, or twice that of connecting")
def test_clients_of_a_killed_process_resume_on_the_other(service: StreamService, tell: Tell) -> None:
    survivor = service.servers[0].port
    crowd = Crowd(message_of(service), CROWD)
    stranded = crowd.clients[: CROWD // 2]

    async def run(flow: Flow, doomed_port: int, doomed_pid: int) -> int:
        await crowd.come(stranded, [doomed_port])
        await crowd.come(crowd.clients[CROWD // 2 :], [survivor])
        await asyncio.sleep(CALM_S)
        os.kill(doomed_pid, signal.SIGKILL)
        await asyncio.gather(*(client.session.ended for client in stranded if client.session))
        await crowd.go(stranded)
        await crowd.come(stranded, [survivor])
        await crowd.until_all_heard_the_last(flow)
        places = len(crowd.places())
        await crowd.go(crowd.clients)
        return places

    with service.installation.web_process() as doomed, Flow(service, TICKS_A_SECOND) as flow:
        places = asyncio.run(run(flow, doomed.port, doomed.pid))
    tell(f"{len(stranded)} of {CROWD} disconnected; {crowd.told(places)}")
    assert (crowd.faults, places) == (0, 1)
    # On a machine on which coming takes longer, so does coming back.
    assert crowd.p99_back_s() <= max(RESUMED_WITHIN_S, 2 * crowd.p99_first_s())
