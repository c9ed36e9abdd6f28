"""Row 13: who comes back to a place that is not known is told so. How long places are kept
is shown at night."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from pytest_django import DjangoDbBlocker

from tests.reliability.clients.swarm import Listener, listen
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import StreamService, streaming

SYMBOLS = [f"AWAY{number}" for number in range(4)]
PATH = "/ws/market"
pytestmark = pytest.mark.usefixtures("rows")


@pytest.fixture(scope="module")
def service(embedded_for_module: Installation, django_db_blocker: DjangoDbBlocker) -> Iterator[StreamService]:
    with django_db_blocker.unblock(), streaming(embedded_for_module, 1, SYMBOLS) as running:
        yield running


class Traveller:
    def __init__(self, service: StreamService) -> None:
        self._port, self._key = service.servers[0].port, service.make_key()

    async def come(self, **fields: Any) -> Listener:
        message = {"action": "subscribe", "symbols": SYMBOLS, "api_key": self._key}
        return await listen(self._port, PATH, message | {"features": ["seq", "lag"]} | fields)

    async def reply(self, **fields: Any) -> dict[str, Any]:
        """Alone."""
        listener = await self.come(**fields)
        await listener.leave()
        return listener.reply.result()


@pytest.mark.row("13", "no partial recovery")
@pytest.mark.parametrize("case", ["wrong epoch", "future", "offset 0", "trimmed history"])
def test_an_unknown_position_is_reported_and_never_partly_recovered(
    service: StreamService, case: str, tell: Tell
) -> None:
    traveller = Traveller(service)
    for symbol in SYMBOLS:
        service.tick(symbol, 2)

    async def run() -> dict[str, Any]:
        before = await traveller.reply()
        changes = {"future": 5, "trimmed history": 0}
        positions = {name: seq + changes.get(case, 0) for name, seq in before["positions"].items()}
        if case == "offset 0":
            positions = dict.fromkeys(positions, 0)
        if case == "trimmed history":
            await asyncio.to_thread(lambda: [service.tick(name, 501) for name in SYMBOLS * 2])
        epoch = "elsewhere" if case == "wrong epoch" else before["epoch"]
        return await traveller.reply(resume={"epoch": epoch, "positions": positions})

    reply = asyncio.run(run())
    tell(
        f"{case}: recovered: {'yes' if reply['recovered'] else 'no'}, not recovered:"
        f" {len(reply['unrecovered'])} of {len(SYMBOLS)}"
    )
    assert (reply["recovered"], reply["unrecovered"]) == (False, SYMBOLS)
