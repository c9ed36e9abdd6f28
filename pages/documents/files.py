"""The project's own documents: docs/**/*.md under /docs, and the images that they show."""

from functools import cache
from pathlib import Path, PurePosixPath
from posixpath import normpath
from urllib.parse import urldefrag, urlsplit

from django.conf import settings

from .rendering import Rendered, render_markdown

FOLDER = settings.BASE_DIR / "docs"
IMAGES = {".png": "image/png", ".svg": "image/svg+xml", ".jpg": "image/jpeg", ".webp": "image/webp"}
# What lies beside the folder and has a page of its own.
BESIDE = {
    "../CHANGELOG.md": "/docs/changelog",
    "../README.md": "/docs",
    "../clients/python/README.md": "/docs/clients",
    "../clients/typescript/README.md": "/docs/clients",
    "../templates/docs/about.md": "/docs/api",
}


@cache
def names() -> tuple[str, ...]:
    """Of all documents, without `.md`: `signals`, `operate/install`."""
    return tuple(sorted(str(path.relative_to(FOLDER).with_suffix("")) for path in FOLDER.rglob("*.md")))


@cache
def document(name: str) -> Rendered:
    """Read once: the files change only with the version."""
    text = (FOLDER / f"{name}.md").read_text()
    return render_markdown(text, lambda link: address_of(link, PurePosixPath(name).parent))


def title_of(name: str) -> str:
    """Without reading the rest, because every page lists all titles."""
    with (FOLDER / f"{name}.md").open() as file:
        return file.readline().removeprefix("# ").strip()


def address_of(link: str, folder: PurePosixPath) -> str | None:
    if urlsplit(link).scheme or link.startswith(("#", "/")):
        return link
    path, fragment = urldefrag(link)
    path = normpath(folder / path)
    page = page_of(path)
    return f"{page}#{fragment}" if page and fragment else page


def page_of(path: str) -> str | None:
    if path in BESIDE:
        return BESIDE[path]
    if path.removesuffix(".md") in names():
        return f"/docs/{path.removesuffix('.md')}"
    return f"/docs/{path}" if image(path) else None


def image(path: str) -> Path | None:
    """Nothing but an image within the folder, whatever the path says."""
    found: Path = (FOLDER / path).resolve()
    if found.suffix in IMAGES and found.is_relative_to(FOLDER.resolve()) and found.is_file():
        return found
    return None
