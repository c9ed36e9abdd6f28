"""The folder of this installation and its secret, both for its owner alone."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

OWNER_ONLY = 0o700
SECRET = "secret"  # noqa: S105 - the name of a file


def tighten(var_dir: Path) -> None:
    """What an earlier version, or a lax umask, left open to others. A folder that is not ours alone stays."""
    try:
        found = var_dir.stat()
        is_ours = found.st_uid == os.geteuid() and not found.st_mode & stat.S_ISVTX
        if not (is_ours and ((var_dir / SECRET).exists() or var_dir.name == "var")):
            return
        if found.st_mode & 0o077:
            var_dir.chmod(OWNER_ONLY)
        for path in (var_dir / SECRET, *var_dir.glob("*.sqlite3*")):
            if path.is_file() and path.stat().st_mode & 0o077:
                path.chmod(0o600)
    except OSError:
        # A read-only disk, or nothing there yet: what has to write there says so itself.
        return


def installation_secret(var_dir: Path) -> str:
    """Made on first use; keys and demo keys are derived from it."""
    path = var_dir / SECRET
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        var_dir.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
        draft = var_dir / f"{SECRET}.{os.getpid()}"
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(48) + "\n")
        try:
            # A link never replaces a file, so of two first starts at once one secret wins.
            os.link(draft, path)
        except FileExistsError:
            pass
        finally:
            draft.unlink()
        return path.read_text().strip()
