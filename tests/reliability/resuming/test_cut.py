"""Sockets that are cut anywhere: what the sessions of a client heard is what the source sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from tests.reliability.conftest import Tell, longer
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import StreamService, streaming

from .ledger_run import SYMBOLS, Run

CUT_FOR_S, CONTROL_FOR_S = longer(20.0, 60.0), 3.0
# After the reply, amid the prices.
TAMPERED_FRAME = 100
pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.row("12–14", "no gaps, no duplicates, every client recovers"),
]


@pytest.fixture(params=["embedded", "scaled"])
def service(request: pytest.FixtureRequest) -> Iterator[StreamService]:
    """Over Redis there are two processes, and who is cut off comes back at the other."""
    installation: Installation = request.getfixturevalue(request.param)
    with streaming(installation, 1 + (request.param == "scaled"), SYMBOLS) as running:
        yield running


def test_every_message_arrives_once_over_all_sessions_of_a_client(
    service: StreamService, seed: int, tell: Tell
) -> None:
    run = Run(service, seed)
    run.for_seconds(CUT_FOR_S)
    gaps, duplicates, wrong = run.faults()
    heard = sum(ledger.count for ledger in run.ledgers)
    unrecovered = sum(ledger.unrecovered for ledger in run.ledgers)
    tell(f"{heard:,} frames over {len(run.ledgers)} clients of three streams, cut {run.cuts:,} times")
    tell(f"gaps: {gaps}, duplicates: {duplicates}, wrong: {wrong}, not recovered: {unrecovered}")
    assert (gaps, duplicates, wrong, unrecovered) == (0, 0, 0, 0)
    # Each of them, and more than once.
    assert run.cuts > 3 * len(run.ledgers)


def treating_one_frame(copies: int) -> Callable[[bytes], bytes]:
    """A proxy that passes one frame of prices on so many times, and all others once."""
    passed = 0

    def tamper(frame: bytes) -> bytes:
        nonlocal passed
        passed += 1
        return frame * copies if passed == TAMPERED_FRAME else frame

    return tamper


@pytest.mark.row("12–14", "one lost frame is one gap, one repeated frame one duplicate")
@pytest.mark.parametrize(("copies", "faults"), [(0, (1, 0, 0)), (2, (0, 1, 1))])
def test_control_one_lost_or_repeated_frame_is_noticed(
    embedded: Installation, seed: int, tell: Tell, copies: int, faults: tuple[int, int, int]
) -> None:
    with streaming(embedded, 1, SYMBOLS) as service:
        run = Run(service, seed)
        run.for_seconds(CONTROL_FOR_S, treating_one_frame(copies))
    gaps, duplicates, _ = run.faults()
    tell(f"gaps: {gaps}, duplicates: {duplicates}")
    assert run.faults() == faults
