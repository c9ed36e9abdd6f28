"""The control of the drill: what it says is never lost, doubled or interrupted it sees when that happens."""

from __future__ import annotations

import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.reliability.drill import report
from tests.reliability.drill.stage import SYMBOLS, Damage, Size, Stage, furnish, stage
from tests.reliability.services.processes import Installation
from tests.reliability.services.supervised import stopped

SIZE = Size(sockets=4, requests_a_second=20.0)
PAUSE_S = 2.0
pytestmark = [pytest.mark.usefixtures("rows")]


def harm(played: Stage, pids: list[int]) -> None:
    name = SYMBOLS[0].encode()
    first, second, *_ = (client.session for client in played.readers.clients)
    assert first is not None
    assert second is not None
    # As if a message had not come, and as if one had come before.
    first.positions[name] -= 1
    second.positions[name] += 1
    # As if more had been acknowledged than was written.
    played.ticks.acknowledged[SYMBOLS[1]] += 1
    played.signals.acknowledged.append("none")
    with ExitStack() as frozen:
        for pid in pids:
            frozen.enter_context(stopped(pid))
        time.sleep(PAUSE_S)


@pytest.mark.row("5–8", "lost, doubled and interrupted are seen")
def test_control_harm_is_counted(embedded: Installation) -> None:
    furnish(embedded)
    with embedded.web_process() as server, stage(embedded, SIZE, engines=0, ports=[server.port]) as played:
        found = played.meet("harm", lambda: harm(played, [server.pid]))
    assert (found.missed, found.doubled, found.ticks_lost, found.signals_lost) == (1, 1, 1, 1)
    assert found.silent_s >= PAUSE_S
    assert found.unanswered_s >= PAUSE_S
    assert not report.is_harmless(found)


def test_page_is_written_between_its_marks(tmp_path: Path) -> None:
    damage = Damage("Redis", 0, 0, 1, 2, 0, 0, 0, "", 1.24, 0.06, 3.0, {200: 7, 0: 1}, 60)
    page = tmp_path / "page.md"
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    report.write(page, report.table([report.row_of(damage, 4)]))
    before, _, rest = page.read_text().partition(report.BEGIN)
    rows, _, after = rest.partition(report.END)
    assert (before, after) == ("before\n", "\nafter\n")
    assert (
        rows.splitlines()[-1]
        == "| Redis | 0 / 0 | 2 / 1 of 4 | 0 / 0 | 0 | 1.2 | 0.1 | 60 | 1 × broken, 7 × 200 |"
    )
