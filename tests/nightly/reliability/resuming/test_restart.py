from __future__ import annotations

import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.reliability.conftest import Tell
from tests.reliability.resuming.test_restart import check_restarts, check_tampered, kept
from tests.reliability.services.processes import Installation

TERM, INT, KILL = signal.SIGTERM, signal.SIGINT, signal.SIGKILL
pytestmark = pytest.mark.usefixtures("rows")


@pytest.mark.row("12", "across restarts of one process: no gaps, no duplicates, every client recovers")
@pytest.mark.parametrize("ends", [(TERM, INT), (KILL, KILL)], ids=["ended", "killed"])
def test_clients_resume_across_restarts_of_either_kind(
    embedded: Installation, tell: Tell, ends: tuple[signal.Signals, ...]
) -> None:
    check_restarts(embedded, ends, tell)


def lose_the_last(directory: Path) -> None:
    kept(directory)[-1].unlink()


def lose_all(directory: Path) -> None:
    shutil.rmtree(directory / "journal")


@pytest.mark.row("12, 13", "what was tampered with is told, and never recovered in part")
@pytest.mark.parametrize("tamper", [lose_the_last, lose_all])
def test_control_journal_entries_that_are_gone_are_reported(
    embedded: Installation, tell: Tell, tamper: Callable[[Path], None]
) -> None:
    check_tampered(embedded, tamper, tell)
