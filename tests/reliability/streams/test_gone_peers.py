"""Rows 46 and 47: a peer that is gone without a word. What it takes on the clock is measured at night."""

from __future__ import annotations

import pytest

from serving.server import UVICORN_OPTIONS
from serving.websocket import protocol
from tests.reliability.conftest import Tell

DROPPED_WITHIN_S = 30.0


@pytest.mark.row("46, 47", "ping, answer and closing take at most 30 s with the default settings")
def test_a_dead_connection_is_detected_and_closed_within_thirty_seconds(tell: Tell) -> None:
    every_s, answer_s = UVICORN_OPTIONS["ws_ping_interval"], UVICORN_OPTIONS["ws_ping_timeout"]
    tell(
        f"pinged every {every_s:.0f} s, {answer_s:.0f} s for the answer,"
        f" {protocol.STALLED_LINGER_S:.0f} s to close"
    )
    assert every_s == 10
    assert every_s + answer_s + protocol.STALLED_LINGER_S <= DROPPED_WITHIN_S
