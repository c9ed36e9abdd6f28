"""In production a static file is named by its content, so that browsers cache it for ever. Versions that run
side by side share the folder: each has a list of its own there, and serves the files of the others too."""

import asyncio
import fcntl
import hashlib
import re
import shutil
from functools import cached_property
from io import BytesIO
from pathlib import Path
from typing import Any, cast

from django.conf import settings
from django.contrib.staticfiles import finders
from django.contrib.staticfiles.management.commands.collectstatic import Command
from django.core.files import File
from django.core.files.base import ContentFile
from django.core.handlers.asgi import ASGIRequest, get_script_prefix
from django.core.management import call_command
from django.core.management.base import CommandError
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.middleware.security import SecurityMiddleware
from servestatic.middleware import ServeStaticMiddleware
from servestatic.storage import CompressedManifestStaticFilesStorage

from core.program import command

HASHED = re.compile(r"\.[0-9a-f]{12}(\.[^./]+)?$")
HALF = ".half"
OWN_SCRIPTS = re.compile(r"^(docs|front|site|terminal)/.*\.js$")
# Of a module that is imported by an address, which Django does not know of.
RESOLVED = (
    r"""(?P<matched>import\.meta\.resolve\("(?P<url>[^"]*)"\))""",
    """import.meta.resolve("%(url)s")""",
)
# Whole lines only, because within one two slashes may be part of an address; and no licence, `/*! … */`.
COMMENT = re.compile(rb"^[ \t]*(?://[^\n]*|/\*\*(?:(?!\*/).)*\*/[ \t]*)$", re.MULTILINE | re.DOTALL)


class HashedFiles(CompressedManifestStaticFilesStorage):  # type: ignore[misc]
    # Modules import each other by the names that pages use. Otherwise what a page preloads is loaded twice,
    # and pages of a new version share a worker of the old one.
    support_js_module_import_aggregation = True
    patterns = (*CompressedManifestStaticFilesStorage.patterns, ("*.js", (RESOLVED,)))

    @cached_property
    def manifest_name(self) -> str:
        return list_of_this_version().name

    def _save(self, name: str, content: "File[Any]") -> str:
        if OWN_SCRIPTS.match(name):
            content = ContentFile(without_comments(b"".join(content.chunks())))
        saved: str = super()._save(name, content)
        return saved

    def add_stats_to_manifest(self) -> None:
        """Left out: another version may have written a file of the same name since."""


class StaticFiles(ServeStaticMiddleware):  # type: ignore[misc]
    """Asked before a page takes one of the few threads, and without what only pages pass through:
    the terminal alone asks for some eighty files."""

    def __init__(self) -> None:
        super().__init__(nowhere)

    async def serve(self, scope: dict[str, Any]) -> HttpResponseBase | None:
        is_asked = scope["method"] in ("GET", "HEAD") and path_of(scope).startswith(self.static_prefix)
        return await asyncio.to_thread(self._serve, scope) if is_asked else None

    def _serve(self, scope: dict[str, Any]) -> HttpResponseBase | None:
        """In one go: the library would change threads for each step, and the files are small."""
        path = path_of(scope)
        found = self.find_file(path) if self.may_have_changed(path) else self.files.get(path)
        if found is None:
            return None
        secured = SecurityMiddleware(lambda request: answer(found, request))
        return cast(HttpResponseBase, secured(ASGIRequest(scope, BytesIO())))

    def may_have_changed(self, path: str) -> bool:
        if self.use_manifest:
            # Another version may have put it there, before this process started or since.
            return path not in self.files and HASHED.search(path) is not None
        # The files of a checkout are edited: sent with the previous length, they would be cut off.
        return True


async def nowhere(_: HttpRequest) -> HttpResponse:
    return HttpResponse(status=404)


def path_of(scope: dict[str, Any]) -> str:
    path: str = scope["path"]
    return path.removeprefix(get_script_prefix(scope).rstrip("/"))


def answer(found: Any, request: HttpRequest) -> HttpResponse:
    made = found.get_response(request.method, request.META)
    with made.file or BytesIO() as file:
        response = HttpResponse(file.read(), status=int(made.status))
    del response["Content-Type"]
    for name, value in made.headers:
        if value is not None:
            response[name] = value
    return response


def without_comments(script: bytes) -> bytes:
    """A fifth of what is sent. The lines that are left have the numbers that they have in the source."""
    return COMMENT.sub(lambda found: b"\n" * found[0].count(b"\n"), script)


def list_of_this_version() -> Path:
    return settings.STATIC_ROOT / f"staticfiles-{digest_of_sources()}.json"


def are_collected() -> bool:
    """Whether what pages name is there, made of the files of this very version and its libraries."""
    return list_of_this_version().exists()


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
    """Collects them if they are missing, while a second process waits. True if it had to."""
    if are_collected():
        return False
    try:
        settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
        # Beside it, because whatever lies in it is served.
        with settings.STATIC_ROOT.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not are_collected():
                collect_beside_others()
    except OSError as error:
        again = command("collectstatic --no-input")
        raise CommandError(
            f"The static files of this version are not in {settings.STATIC_ROOT}, where nothing can be"
            f" written ({error.strerror}). Run `{again}` as a user who may write there."
        ) from None
    return True


def collect_beside_others() -> None:
    """Each file comes whole and at once, because another version may serve it; the list comes last."""
    half = settings.STATIC_ROOT / HALF
    shutil.rmtree(half, ignore_errors=True)
    collecting = Command()
    collecting.storage = HashedFiles(location=half)
    call_command(collecting, interactive=False, verbosity=0)
    last = half / list_of_this_version().name
    for file in [*(path for path in half.rglob("*") if path.is_file() and path != last), last]:
        to = settings.STATIC_ROOT / file.relative_to(half)
        to.parent.mkdir(parents=True, exist_ok=True)
        file.replace(to)
    shutil.rmtree(half)
