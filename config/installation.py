"""The folder of this installation and its secret, which only its owner may read."""

import os
import secrets
import shlex
import stat
from contextlib import suppress
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured

from core.program import command

from .environment import env, var_dir

OWNER_ONLY = 0o700
DATABASE = "tickwire.sqlite3"
MAKE_SECRET = "python3 -c 'import secrets; print(secrets.token_urlsafe(48))'"  # noqa: S105 - a command
SECRET = "secret"  # noqa: S105 - the name of a file


def prepare() -> None:
    """Every entry point calls it before it reads the settings, which write nothing."""
    folder = var_dir()
    tighten(folder)
    # Its database and secrets are elsewhere, and the disk may be read-only.
    if env.switch("PRODUCTION"):
        return
    folder.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
    refuse_lost_secret()
    if not env.text("SECRET_KEY"):
        make_secret(folder)
        # Only for a folder that is recognisably ours.
        tighten(folder)


def require_data() -> None:
    """For commands that need existing data: a mistyped folder must not become an installation."""
    folder = var_dir()
    tighten(folder)
    refuse_lost_secret()
    if not (env.text("SECRET_KEY") or known_secret(folder)):
        raise _nothing_kept(folder)
    require_database()


def require_database() -> None:
    """SQLite would make a file at any path, and then lack its tables."""
    named = env.parsed("DATABASE_URL")
    if not named and not (var_dir() / DATABASE).exists():
        raise _nothing_kept(var_dir())
    if named and named["ENGINE"].endswith("sqlite3") and not Path(named["NAME"]).exists():
        raise ImproperlyConfigured(
            f"There is no database at {named['NAME']}. Correct DATABASE_URL, or begin with"
            f" `{command('serve')}`, which makes it."
        )


def _nothing_kept(folder: Path) -> ImproperlyConfigured:
    return ImproperlyConfigured(
        f"Nothing is stored in {folder} yet. Begin with `{command('serve')}`, or name the right folder with"
        " --data or VAR_DIR."
    )


NOTHING_OPENS = """\
{secret} is missing or empty, and no other opens what is kept beside it: API keys and second factors
would be void, and people logged out. Put it back, or start with the secrets that
`backup --with-secrets` wrote: set -a; . FILE.secrets
If they are lost permanently, continue without them: {make}"""


def refuse_lost_secret() -> None:
    """Replacing it silently would void everything that was made with it."""
    folder = var_dir()
    if env.switch("PRODUCTION") or env.text("SECRET_KEY") or known_secret(folder):
        return
    secret, database = folder / SECRET, folder / DATABASE
    is_in_use = not env.parsed("DATABASE_URL") and database.exists() and database.stat().st_size
    if is_in_use or secret.exists():
        make = f"{MAKE_SECRET} > {shlex.quote(str(secret))}"
        raise ImproperlyConfigured(NOTHING_OPENS.format(secret=secret, make=make))


def known_secret(folder: Path) -> str:
    """Empty until the first program has made it. Until then Django refuses to use SECRET_KEY."""
    try:
        return (folder / SECRET).read_text().strip()
    except FileNotFoundError:
        return ""


def tighten(folder: Path) -> None:
    """Removes access for others that an earlier version or a lax umask left. A shared folder stays as it
    is."""
    try:
        found = folder.stat()
        is_ours = found.st_uid == os.geteuid() and not found.st_mode & stat.S_ISVTX
        if not (is_ours and ((folder / SECRET).exists() or folder.name == "var")):
            return
        if found.st_mode & 0o077 and not _is_of_the_system(folder):
            folder.chmod(OWNER_ONLY)
        for path in (folder / SECRET, *folder.glob("*.sqlite3*")):
            if path.is_file() and path.stat().st_mode & 0o077:
                path.chmod(0o600)
    except OSError:
        # The disk is read-only, or the folder does not exist yet. The first write reports it.
        return


def _is_of_the_system(folder: Path) -> bool:
    """`--data /` or a home directory is a mistake that would lock other users of the machine out."""
    return folder == Path(os.path.expanduser("~")) or len(folder.parts) <= 2


def make_secret(folder: Path) -> None:
    """The hashes of API keys and the keys of the demo are derived from it."""
    if known_secret(folder):
        return
    folder.mkdir(mode=OWNER_ONLY, parents=True, exist_ok=True)
    draft = folder / f"{SECRET}.{os.getpid()}"
    draft.touch(mode=0o600)
    with draft.open("w") as file:
        file.write(secrets.token_urlsafe(48) + "\n")
        file.flush()
        # Or a power cut could leave an empty file of this name.
        os.fsync(file.fileno())
    try:
        # A link never replaces a file, so of two first starts at once one secret wins.
        with suppress(FileExistsError):
            os.link(draft, folder / SECRET)
    finally:
        draft.unlink()
