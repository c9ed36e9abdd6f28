"""A disk that fills up while the past is being made: one sentence, and the service goes on."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from demo.past import LATER
from tests.patience import wait_until
from tests.programs.running import Serve

from .conftest import COMPLETE
from .small import prepare_small, run

# Room for what the engine writes, and not for the past of one instrument.
LEFT = 2_000_000
BEGIN = "from demo.seeding import begin; begin(lambda text: None)"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """One that only root may mount."""
    if os.geteuid() and not os.environ.get("CI"):
        pytest.skip("Only root may mount a small disk; CI does.")
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=60m", "tmpfs", folder], check=True)
    yield folder
    subprocess.run(["umount", "--lazy", folder], check=True)


def test_it_is_one_sentence_and_the_rest_is_made_when_there_is_room(disk: Path, tmp_path: Path) -> None:
    prepared = prepare_small(tmp_path / "prepared")
    run(prepared, BEGIN)
    var_dir = Path(shutil.copytree(prepared, disk / "var"))
    free = os.statvfs(disk)
    (disk / "full").write_bytes(b"0" * (free.f_bavail * free.f_bsize - LEFT))
    # What it prints would not fit either.
    said = tmp_path / "said"
    said.mkdir()
    with Serve(said / "var", VAR_DIR=str(var_dir)) as running:
        wait_until(lambda: LATER in running.output)
        assert httpx.get(f"{running.url}/healthz").status_code == 200
        page = httpx.get(f"{running.url}/demo-past.json").json()
        assert "of 2 instruments" in page["text"]
    told = [line for line in running.output.splitlines() if LATER in line]
    assert told == [f"CommandError: The demo's past is not complete: database or disk is full. {LATER}"]
    assert "Traceback" not in running.output

    (disk / "full").unlink()
    with Serve(said / "var", VAR_DIR=str(var_dir)) as running:
        wait_until(lambda: COMPLETE in running.output)
