"""Row 5 for ticks: kill -9 the server, at any moment, with its engine: its journal holds what it took."""

from __future__ import annotations

import random
import time

import pytest

from tests.reliability.conftest import Tell, longer
from tests.reliability.services.engines import (
    NEVER_CLOSING,
    differences,
    killed_after,
    make_publisher,
    stored,
    written,
)
from tests.reliability.services.processes import Installation

SEED, ROUNDS = 20_261_121, longer(3, 6)
SYMBOL = "KILLED"
pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.row("5", "no acknowledged tick lost, none duplicated, none corrupted"),
]


def test_a_killed_server_resumes_with_every_tick_it_acknowledged(embedded: Installation, tell: Tell) -> None:
    publisher, draw = make_publisher(embedded, SYMBOL, SEED), random.Random(SEED)  # noqa: S311
    epochs, lost, oldest = set(), [], 0.0
    for _ in range(ROUNDS):
        with embedded.serve(1, **NEVER_CLOSING) as (server,):
            publisher.recover(server.url)
            with killed_after(draw.uniform(0.1, 1.6), server.pid):
                publisher.send_until_it_breaks(server.url)
            died_at = time.monotonic()
        found = stored(embedded, SYMBOL)
        assert differences(found, publisher.ticks) == []
        epochs.add(found.state.epoch)
        lost.append(len(publisher.answered_at) - found.seq)
        if lost[-1] > 0:
            oldest = max(oldest, died_at - publisher.answered_at[found.seq])
    with embedded.serve(1, **NEVER_CLOSING) as (server,):
        publisher.recover(server.url)
        written(embedded, SYMBOL, publisher.ticks)
    tell(f"seed {SEED}: {len(publisher.ticks)} ticks, {ROUNDS} kills, every tick stored once after resending")
    tell(f"not yet in the database after a kill: {lost}, the oldest {oldest:.2f} s old")
    tell(f"unknown to the next process: {publisher.forgotten}")
    found = stored(embedded, SYMBOL)
    # The control: the reckoning notices one tick fewer, and one that counts twice.
    assert differences(found, publisher.ticks[:-1])
    assert differences(found, [publisher.ticks[0], *publisher.ticks[:-1]])
    # One numbering for all of them, as no number was given twice.
    assert len(epochs) == 1
    assert publisher.forgotten == 0
    # Otherwise the journal had nothing to add to the database.
    assert max(lost) > 0
