"""The block of an upgrade in docs/operate/install.md, with programs that only note what they are asked.

`make units-check` runs it on a machine of its own."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.reliability.services.processes import ROOT

PAGE = (ROOT / "docs/operate/install.md").read_text()
(BLOCK,) = re.findall(r"```sh\n(VERSION=.*?)```", PAGE, re.DOTALL)
UNITS = (
    "tickwire-engine@1",
    "tickwire-engine@2",
    "tickwire-web@8001",
    "tickwire-web@8002",
    "tickwire-web@8003",
)
LISTED = "".join(f"{unit}.service loaded active running Tickwire\\n" for unit in UNITS)
PROGRAMS = {
    "python3": 'mkdir -p "$3/bin" && ln -sf /bin/true "$3/bin/pip"',
    "systemctl": f"""echo "$@" >> "$NOTES"; case "$1" in list-units) printf '{LISTED}';; esac""",
    "systemd-run": 'for last; do :; done; echo "$@" >> "$NOTES"; exit "$MIGRATED"',
}


class Machine:
    def __init__(self, folder: Path) -> None:
        self.folder, self.link = folder, folder / "opt/tickwire"
        for each in ("opt/tickwire-old", "etc/systemd/system", "etc/tickwire", "usr/local/sbin", "programs"):
            (folder / each).mkdir(parents=True)
        self.link.symlink_to(folder / "opt/tickwire-old")
        for name, script in PROGRAMS.items():
            path = folder / "programs" / name
            path.write_text(f"#!/bin/sh\n{script}\n")
            path.chmod(0o755)

    def upgrade(self, migrated: int) -> list[str]:
        """What systemd is asked. `migrated` is how the migration ends."""
        notes = self.folder / "notes"
        block = re.sub(r"(?<![\w.])/(opt|etc|usr)/", rf"{self.folder}/\1/", BLOCK)
        path = ":".join(str(self.folder / each) for each in ("programs", "usr/local/sbin"))
        environment = {
            "PATH": f"{path}:{os.environ['PATH']}",
            "NOTES": str(notes),
            "MIGRATED": str(migrated),
            "EMAIL_URL": "dummymail://",
        }
        ran = subprocess.run(
            ["sh", "-c", block], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
        )
        assert ran.stderr == ""
        return notes.read_text().splitlines()


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def test_old_version_stays_where_the_database_cannot_be_migrated(machine: Machine) -> None:
    asked = machine.upgrade(migrated=1)

    assert machine.link.readlink().name == "tickwire-old"
    assert asked[-1].endswith("/bin/tickwire-server migrate --no-input")
    assert not any("restart" in each for each in asked)


def test_each_process_that_runs_is_restarted_once_the_new_version_has_migrated(machine: Machine) -> None:
    asked = machine.upgrade(migrated=0)
    new = machine.link.readlink()

    assert new.name != "tickwire-old"
    (migration,) = [at for at, each in enumerate(asked) if f"{new}/bin/tickwire-server migrate" in each]
    restarted = [f"restart {unit}.service" for unit in reversed(UNITS)]
    assert [each for each in asked[migration:] if "restart" in each] == restarted
