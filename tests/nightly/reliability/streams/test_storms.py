"""Rows 6 and 14: hundreds of clients lose their service at once, and what they then have heard."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker

from tests.reliability.clients.swarm import Crowd
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


@pytest.mark.row("14", "no gaps, no duplicates, every client recovers")
def test_five_hundred_clients_disconnected_twenty_times_miss_nothing(
    service: StreamService, tell: Tell
) -> None:
    ports = [server.port for server in service.servers]
    crowd = Crowd(PATH, message_of(service), KICKED)

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
    crowd = Crowd(PATH, message_of(service), CROWD)
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
