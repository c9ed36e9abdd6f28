from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from operations.doctor.data_folder import check_folder

from .diagnoses import faults, only_fault


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "var"
    made.mkdir(mode=0o700)
    return made


def test_a_folder_in_order_has_no_fault_and_nothing_is_made(folder: Path) -> None:
    assert faults(check_folder(folder)) == []
    later = folder / "later"
    assert only_fault(check_folder(later)) == ("warn", f"{later} is not there yet.")
    assert list(folder.iterdir()) == []


def test_a_file_in_its_place_is_a_fault(folder: Path) -> None:
    (folder / "file").touch()
    for place in ("file", "file/below"):
        level, says = only_fault(check_folder(folder / place))
        assert (level, str(folder / "file") in says) == ("fail", True)


@pytest.mark.parametrize("name", ["", "secret", "tickwire.sqlite3"])
def test_what_others_may_read_is_named(folder: Path, name: str) -> None:
    path = folder / name
    if name:
        path.touch()
    path.chmod(0o755)
    assert only_fault(check_folder(folder)) == (
        "warn",
        f"Other users may read what should be private: {path}.",
    )


@pytest.mark.parametrize(
    ("megabytes", "level", "says"),
    [
        (300, "warn", "has 300 MB of free space"),
        (50, "fail", "has 50 MB of free space"),
        (0, "fail", "no space left on device"),
    ],
)
def test_a_disk_that_fills_up_is_told(megabytes: int, level: str, says: str, tmp_path: Path) -> None:
    if os.geteuid() and not os.environ.get("CI"):
        pytest.skip("Only root may mount a small disk; CI does.")
    size = f"size={megabytes * 1_000_000 or 4096}"
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"{size},mode=700", "tmpfs", tmp_path], check=True)
    try:
        if not megabytes:
            (tmp_path / "full").write_bytes(b"0" * 4096)
        found = only_fault(check_folder(tmp_path))
    finally:
        subprocess.run(["umount", tmp_path], check=True)
    assert found[0] == level
    assert says in found[1]
