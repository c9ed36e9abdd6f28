"""The folder of this installation and its secret, both for its owner alone."""

import os
import secrets
import stat
from pathlib import Path

from .environment import env, var_dir

OWNER_ONLY = 0o700
SECRET = "secret"  # noqa: S105 - the name of a file


def prepare() -> None:
    """What a program that starts writes before it reads the settings, which write nothing."""
    folder = var_dir()
    tighten(folder)
    if not (env.str("SECRET_KEY", "") or env.bool("PRODUCTION", False)):
        make_secret(folder)


def known_secret(folder: Path) -> str:
    """Empty before the first program has made it; whoever asks for SECRET_KEY then is told by Django."""
    try:
        return (folder / SECRET).read_text().strip()
    except FileNotFoundError:
        return ""


def tighten(folder: Path) -> None:
    """What an earlier version, or a lax umask, left open to others. A folder that is not ours alone stays."""
    try:
        found = folder.stat()
        is_ours = found.st_uid == os.geteuid() and not found.st_mode & stat.S_ISVTX
        if not (is_ours and ((folder / SECRET).exists() or folder.name == "var")):
            return
        if found.st_mode & 0o077:
            folder.chmod(OWNER_ONLY)
        for path in (folder / SECRET, *folder.glob("*.sqlite3*")):
            if path.is_file() and path.stat().st_mode & 0o077:
                path.chmod(0o600)
    except OSError:
        # A read-only disk, or nothing there yet: what has to write there says so itself.
        return


def make_secret(folder: Path) -> str:
    """Made on first use; keys and demo keys are derived from it."""
    path = folder / SECRET
    try:
        return path.read_text().strip()
    except FileNotFoundError:
        folder.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
        draft = folder / f"{SECRET}.{os.getpid()}"
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
