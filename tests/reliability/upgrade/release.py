"""The last release, as the file RELEASE names it: its code, and the environment that its lock describes."""

from __future__ import annotations

import copy
import hashlib
import io
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.reliability.services.processes import ROOT, Installation
from tools.lint.migrations.last import Release, last_release

LOCK = "requirements.lock"


class ReleaseMissing(Exception):
    """What there is of it cannot be had; the message says what to do."""


def unpack(release: Release, folder: Path) -> Path:
    """Its files, as they were committed."""
    archive = subprocess.run(
        ["git", "archive", "--format=tar", release.commit], cwd=ROOT, capture_output=True, check=False
    )
    if archive.returncode:
        raise ReleaseMissing(
            f"The commit of release {release} is not in this clone: a shallow clone has only the newest ones."
            f" `git fetch --unshallow` brings all, `git fetch origin {release.commit}` this one."
        )
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(folder, filter="data")
    return folder


def python_for(code: Path) -> str:
    """An interpreter with exactly what the lock of this code names: ours where both locks are the same."""
    lock = (code / LOCK).read_bytes()
    if lock == (ROOT / LOCK).read_bytes():
        return sys.executable
    home = Path(sys.prefix) / f"release-{hashlib.sha256(lock).hexdigest()[:12]}"
    if not home.exists():
        make_environment(code / LOCK, home)
    return str(home / "bin" / "python")


def make_environment(lock: Path, home: Path) -> None:
    uv, half = str(Path(sys.executable).parent / "uv"), home.with_name(f"{home.name}-half")
    shutil.rmtree(half, ignore_errors=True)
    for command in (
        [uv, "venv", "--quiet", "--relocatable", "--python", sys.executable, str(half)],
        [
            uv,
            "pip",
            "sync",
            "--quiet",
            "--require-hashes",
            "--python",
            str(half / "bin" / "python"),
            str(lock),
        ],
    ):
        made = subprocess.run(command, capture_output=True, text=True, check=False)
        if made.returncode:
            raise ReleaseMissing(f"The packages of the last release could not be installed:\n{made.stderr}")
    half.rename(home)


def as_released(installation: Installation, folder: Path) -> Installation:
    """The same database and Redis, served by the code of the last release."""
    released = copy.copy(installation)
    released.root = unpack(last_release(), folder)
    released.python = python_for(released.root)
    return released
