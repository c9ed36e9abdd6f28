"""What thousands of keys and of instruments cost: the commands that make them, and /metrics."""

from __future__ import annotations

import resource
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from instruments.saving import SHIPPED
from tests.nightly.figures import note
from tests.operations.copying.conftest import KINDS
from tests.reliability.services.processes import Installation, tied

KEYS, KEYS_S = 10_000, 60
INSTRUMENTS, INSTRUMENTS_S = 5_000, 10
METRICS_KB = 400


def spent_by(installation: Installation, *arguments: str, given: str = "") -> tuple[float, str]:
    """Seconds of a processor, without those of PostgreSQL, and what was printed."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = tied("manage.py", *arguments)
    environment = installation.environment()
    done = subprocess.run(command, env=environment, input=given, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.returncode == 0, done.stderr
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, done.stdout


def table(path: Path) -> str:
    header, *rows = (SHIPPED / "instruments.csv").read_text().splitlines()
    _, rest = next(row for row in rows if row.startswith("EURUSD")).split(",", 1)
    path.write_text("\n".join([header, *(f"SYM{number:04},{rest}" for number in range(INSTRUMENTS))]))
    return str(path)


@pytest.mark.parametrize("kind", KINDS)
def test_many_are_made_at_once_and_metrics_stay_small(
    kind: str, new_database: Callable[[str], str], tmp_path: Path
) -> None:
    installation = Installation(tmp_path, new_database(kind))
    owners = "".join(f"owner-{number}\n" for number in range(KEYS))
    keys_s, printed = spent_by(installation, "issue_key", "-", "--tier", "pro", given=owners)
    spent_by(installation, "load_instruments")
    file = table(tmp_path / "instruments.csv")
    new_s, added = spent_by(installation, "load_instruments", file)
    changed = (tmp_path / "instruments.csv").read_text().replace(",60,0.5,", ",61,0.5,")
    Path(file).write_text(changed)
    changed_s, updated = spent_by(installation, "load_instruments", file)
    with installation.web_process() as server:
        metrics = server.metrics()

    instruments_s, kilobytes = max(new_s, changed_s), len(metrics) / 1000
    held = keys_s <= KEYS_S and instruments_s <= INSTRUMENTS_S and kilobytes <= METRICS_KB
    note(
        f"many at once, on {kind}",
        f"{KEYS:,} keys in {KEYS_S} s of a processor, {INSTRUMENTS:,} instruments in {INSTRUMENTS_S}, and "
        f"{METRICS_KB} KB of metrics",
        f"{keys_s:.1f} s, {new_s:.1f} s new and {changed_s:.1f} s changed, {kilobytes:.0f} KB",
        held=held,
    )
    assert len(printed.splitlines()) == KEYS
    assert f"{INSTRUMENTS} added" in added
    assert f"{INSTRUMENTS} updated" in updated
    assert 'tickwire_instruments{state="stale"}' in metrics
    assert held
