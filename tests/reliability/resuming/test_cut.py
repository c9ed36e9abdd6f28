"""Sockets that are cut anywhere: what the sessions of a client heard is what the source sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from pytest_django import DjangoDbBlocker

from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation
from tests.reliability.services.stream_services import StreamService, streaming

from .ledger_run import SYMBOLS, Run

TIMES = 3
# After the reply, amid the prices, of which four come with a turn.
TAMPERED_FRAME, TURNS = 100, 60
pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.row("12–14", "no gaps, no duplicates, every client recovers"),
]


@pytest.fixture(scope="module")
def alone(embedded_for_module: Installation, django_db_blocker: DjangoDbBlocker) -> Iterator[StreamService]:
    with django_db_blocker.unblock(), streaming(embedded_for_module, 1, SYMBOLS) as running:
        yield running


@pytest.fixture(scope="module")
def apart(scaled: Installation, django_db_blocker: DjangoDbBlocker) -> Iterator[StreamService]:
    """Two processes, and who is cut off comes back at the other."""
    with django_db_blocker.unblock(), streaming(scaled, 2, SYMBOLS) as running:
        yield running


@pytest.mark.parametrize("kind", ["alone", "apart"])
def test_every_message_arrives_once_over_all_sessions_of_a_client(
    kind: str, request: pytest.FixtureRequest, seed: int, tell: Tell
) -> None:
    check(Run(request.getfixturevalue(kind), seed), TIMES, tell)


def check(run: Run, times: int, tell: Tell) -> None:
    run.until_each_is_cut(times)
    heard = sum(ledger.count for ledger in run.ledgers)
    unrecovered = sum(ledger.unrecovered for ledger in run.ledgers)
    tell(f"{heard:,} frames over {len(run.ledgers)} clients of three streams, cut {run.cuts:,} times")
    tell(f"gaps, duplicates, wrong: {run.faults()}, not recovered: {unrecovered}")
    assert (*run.faults(), unrecovered) == (0, 0, 0, 0)


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
    alone: StreamService, seed: int, copies: int, faults: tuple[int, int, int]
) -> None:
    run = Run(alone, seed)
    run.tampered(treating_one_frame(copies), TURNS)
    assert run.faults() == faults
