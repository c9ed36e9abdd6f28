"""Row 5 for ticks: kill -9 the server, at any moment, with its engine: its journal holds what it took."""

from __future__ import annotations

import random

import pytest

from tests.reliability.conftest import Tell
from tests.reliability.services.engines import (
    NEVER_CLOSING,
    differences,
    make_publisher,
    send_until_killed,
    stored,
    written,
)
from tests.reliability.services.processes import Installation

SEED, MOST_ROUNDS = 20_261_121, 30
SYMBOL = "KILLED"
pytestmark = pytest.mark.row("5", "no acknowledged tick lost, none duplicated, none corrupted")


def test_a_killed_server_resumes_with_every_tick_it_acknowledged(embedded: Installation, tell: Tell) -> None:
    kill_again_and_again(embedded, tell, rounds=1)


def kill_again_and_again(installation: Installation, tell: Tell, rounds: int) -> None:
    """So often at least, and until the database lacked something that had been acknowledged."""
    publisher, draw = make_publisher(installation, SYMBOL, SEED), random.Random(SEED)  # noqa: S311
    epochs, lost = set(), list[int]()
    while len(lost) < rounds or (max(lost) <= 0 and len(lost) < MOST_ROUNDS):
        with installation.serve(1, **NEVER_CLOSING) as (server,):
            publisher.recover(server.url)
            send_until_killed(publisher, server, draw)
        found = stored(installation, SYMBOL)
        assert differences(found, publisher.ticks) == []
        epochs.add(found.state.epoch)
        lost.append(len(publisher.answered_at) - found.seq)
    with installation.serve(1, **NEVER_CLOSING) as (server,):
        publisher.recover(server.url)
        written(installation, SYMBOL, publisher.ticks)
    tell(f"seed {SEED}: {len(publisher.ticks)} ticks, {len(lost)} kills, every tick stored once afterwards")
    tell(f"not yet in the database after a kill: {lost}")
    tell(f"unknown to the next process: {publisher.forgotten}")
    found = stored(installation, SYMBOL)
    # The control: the reckoning notices one tick fewer, and one that counts twice.
    assert differences(found, publisher.ticks[:-1])
    assert differences(found, [publisher.ticks[0], *publisher.ticks[:-1]])
    # One numbering for all of them, as no number was given twice.
    assert len(epochs) == 1
    assert publisher.forgotten == 0
    # Otherwise the journal had nothing to add to the database.
    assert max(lost) > 0
