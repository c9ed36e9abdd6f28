"""Row 77: in one process the window lies in its memory, and begins anew with it."""

from __future__ import annotations

import os
import signal

import pytest

from tests.factories import make_account, make_key
from tests.reliability.clients.crowd import rush
from tests.reliability.conftest import Tell
from tests.reliability.services.processes import Installation

LIMIT = 60


@pytest.mark.full
@pytest.mark.row("77", "at most twice the limit, as documented")
@pytest.mark.usefixtures("rows")
def test_a_killed_process_starts_a_new_rate_window_only_once(embedded: Installation, tell: Tell) -> None:
    with embedded.orm():
        key = make_key(make_account())
    with embedded.serve(1) as servers:
        before = rush(servers, [key])[200]
        os.kill(servers[0].pid, signal.SIGKILL)
    with embedded.serve(1) as servers:
        after = [rush(servers, [key])[200] for _ in range(2)]
    tell(f"admitted of 100 before the kill {before}, after it {after[0]}, and then {after[1]}")
    assert before == LIMIT
    assert after[0] <= LIMIT
    assert sum(after) <= LIMIT
