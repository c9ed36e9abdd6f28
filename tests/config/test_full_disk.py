from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs.commands import manage
from tests.programs.services import free_port

pytestmark = pytest.mark.served


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of three megabytes, which only root may mount."""
    if os.geteuid() and not os.environ.get("CI"):
        pytest.skip("Only root may mount a small disk; CI does.")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", tmp_path], check=True)
    yield tmp_path
    subprocess.run(["umount", tmp_path], check=True)


def test_a_disk_that_fills_up_is_one_clear_sentence(small_disk: Path) -> None:
    ended = manage(small_disk, "serve", PORT=str(free_port()))

    assert ended.returncode == 1
    assert ended.stderr.strip().splitlines()[-1].startswith("The disk is full")
    assert "Traceback" not in ended.stderr


def test_a_disk_that_is_full_from_the_start_is_one_clear_sentence(small_disk: Path) -> None:
    with (small_disk / "full").open("wb") as file, pytest.raises(OSError, match="No space left"):
        file.write(b"0" * 4_000_000)

    ended = manage(small_disk / "var", "serve", PORT=str(free_port()))

    assert ended.returncode == 1
    assert len(ended.stderr.strip().splitlines()) == 1
    assert ended.stderr.startswith("The disk is full")
