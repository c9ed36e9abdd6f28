"""Closed candles over a kill -9 of the engine that another replaces."""

from __future__ import annotations

import pytest

from tests.reliability.conftest import Tell
from tests.reliability.engine.test_candles import FIRST, MORE, Follower, Source, check, head_of
from tests.reliability.services.engine_processes import engines, writer_of
from tests.reliability.services.processes import Installation

pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.row("12", "no closed candle missing, none sent twice, all identical to REST"),
]


def test_an_engine_that_takes_over_continues_the_sequence_numbers_of_candles(
    scaled: Installation, tell: Tell
) -> None:
    source = Source(scaled)
    follower = Follower(source.api_key)
    with engines(scaled, 2) as running, scaled.serve(2) as (server, other):
        with follower.connected(server) as socket:
            source.push_many(server, FIRST)
            follower.hear_until(socket, head_of(other, source.api_key))
            pid = writer_of(scaled)
            (leader,) = [engine for engine in running if engine.pid == pid]
            leader.kill()
            running.remove(leader)
            source.push_many(server, MORE)
            follower.hear_until(socket, head_of(server, source.api_key))
        source.push_many(server, MORE)
        with follower.connected(other) as socket:
            follower.hear_until(socket, head_of(other, source.api_key))
            check(follower, other, tell)
