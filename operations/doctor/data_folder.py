"""The folder in which this installation keeps what it keeps."""

import os
import secrets
import shutil
from collections.abc import Iterator
from pathlib import Path

from core.program.commands import command

from .diagnosis import Diagnosis, fail, ok, warn

ABOUT = "data"
ELSEWHERE = "Make it writable for this user, or name another one with --data or VAR_DIR."
# Files under which a database or a journal grinds to a halt, and those under which somebody should look.
LEAST_BYTES, FEW_BYTES = 100_000_000, 1_000_000_000


def check_folder(folder: Path) -> Iterator[Diagnosis]:
    if not folder.exists():
        yield _missing(folder)
        return
    if why := _why_unwritable(folder):
        yield fail(ABOUT, f"Nothing can be written to {folder}: {why}.", ELSEWHERE)
        return
    yield _space(folder)
    if open_to_others := [path for path in _private(folder) if path.stat().st_mode & 0o077]:
        names = " ".join(str(path) for path in open_to_others)
        yield warn(ABOUT, f"Other users may read what should be private: {names}.", f"chmod go= {names}")


def _missing(folder: Path) -> Diagnosis:
    nearest = next(parent for parent in folder.parents if parent.exists())
    if nearest.is_dir() and os.access(nearest, os.W_OK):
        fix = f"The first `{command('serve')}` makes it. If it should be there, fix --data or VAR_DIR."
        return warn(ABOUT, f"{folder} is not there yet.", fix)
    return fail(ABOUT, f"{folder} is not there, and nobody may make it in {nearest}.", ELSEWHERE)


def _why_unwritable(folder: Path) -> str:
    """By writing, because permissions do not tell of a read-only or a full disk."""
    probe = folder / f"doctor-{secrets.token_hex(4)}"
    try:
        probe.write_bytes(b"0" * 4096)
        probe.unlink()
    except OSError as error:
        return (error.strerror or str(error)).lower()
    return ""


def _space(folder: Path) -> Diagnosis:
    free = shutil.disk_usage(folder).free
    says = f"{folder} can be written and has {free / 1e9:,.1f} GB of free space."
    if free >= FEW_BYTES:
        return ok(ABOUT, says)
    says = f"The disk of {folder} has {free / 1e6:,.0f} MB of free space."
    fix = "Free some, or move the folder to a larger disk."
    return fail(ABOUT, says, fix) if free < LEAST_BYTES else warn(ABOUT, says, fix)


def _private(folder: Path) -> Iterator[Path]:
    # Whose folder it is not, as in a group's, knows what others may read.
    if folder.stat().st_uid == os.geteuid():
        yield folder
    yield from (path for path in (folder / "secret", *sorted(folder.glob("*.sqlite3*"))) if path.is_file())
