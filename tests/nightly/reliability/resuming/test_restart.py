from __future__ import annotations

import signal

import pytest

from tests.reliability.conftest import Tell
from tests.reliability.resuming.test_restart import KILL, TERM, check
from tests.reliability.services.processes import Installation


@pytest.mark.usefixtures("rows")
@pytest.mark.row("12", "across restarts of one process: no gaps, no duplicates, every client recovers")
@pytest.mark.parametrize("ends", [(TERM, signal.SIGINT), (KILL, KILL)], ids=["ended", "killed"])
def test_clients_resume_across_restarts_of_either_kind(
    embedded: Installation, tell: Tell, ends: tuple[signal.Signals, ...]
) -> None:
    check(embedded, ends, tell)
