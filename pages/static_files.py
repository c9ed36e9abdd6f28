"""In production a static file is named by its content, so that browsers keep it for good."""

import fcntl
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.management import call_command
from django.core.management.base import CommandError
from servestatic.storage import CompressedManifestStaticFilesStorage

from core.program.commands import command

MADE_OF = "made-of.txt"


class HashedFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    # Modules import each other by the names that pages use. Otherwise what a page preloads is loaded twice,
    # and pages of a new version share a worker of the old one.
    support_js_module_import_aggregation = True

    def post_process(self, *args: Any, dry_run: bool = False, **options: Any) -> Iterator[Any]:
        yield from super().post_process(*args, dry_run=dry_run, **options)
        if not dry_run:
            Path(self.path(MADE_OF)).write_text(digest_of_sources())


def are_collected() -> bool:
    """Whether what pages name is there, made of the files of this very version and its libraries."""
    try:
        return (settings.STATIC_ROOT / MADE_OF).read_text() == digest_of_sources()
    except OSError:
        return False


def digest_of_sources() -> str:
    """Of the contents and not the times, which an image or an index may have changed."""
    digest = hashlib.blake2b(digest_size=16)
    for finder in finders.get_finders():
        for name, storage in sorted(finder.list([]), key=lambda found: str(found[0])):
            content = Path(storage.path(name)).read_bytes()
            digest.update(f"{getattr(storage, 'prefix', '')}/{name}:{len(content)}:".encode())
            digest.update(content)
    return digest.hexdigest()


def collect() -> bool:
    """Where they are missing or of another version; a second process waits meanwhile. True if it had to."""
    if are_collected():
        return False
    try:
        settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
        # Beside it, because whatever lies in it is served.
        with settings.STATIC_ROOT.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not are_collected():
                call_command("collectstatic", interactive=False, verbosity=0)
    except OSError as error:
        again = command("collectstatic --no-input")
        raise CommandError(
            f"The static files of this version are not in {settings.STATIC_ROOT}, where nothing can be"
            f" written ({error.strerror}). Run `{again}` as somebody who may write there."
        ) from None
    return True
