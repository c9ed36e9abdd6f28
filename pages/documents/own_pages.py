"""The pages written for the site, each a template with its context."""

import re
from collections.abc import Callable
from functools import cache
from pathlib import PurePosixPath
from typing import Any, NamedTuple

from django.conf import settings
from django.utils.safestring import SafeString, mark_safe

from market.streams.protocol.messages import KINDS, TOGETHER

from . import reference, stream_reference
from .packages import wheel_name
from .rendering import DocumentHeading, Rendered, address_of, render_markdown, with_marks
from .samples import Filled, from_templates, of_stream


# CHANGELOG.md, release by release.
class Release(NamedTuple):
    title: str
    items: list[SafeString]

    @property
    def anchor(self) -> str:
        return re.sub(r"\W+", "-", self.title.partition(" ")[0].lower()).strip("-")


class Changes(NamedTuple):
    about: SafeString
    releases: list[Release]


def read_changelog(text: str) -> Changes:
    about, *releases = re.split(r"^## ", text, flags=re.MULTILINE)
    return Changes(in_one_line(about.split("\n", 1)[1]), [read_release(each) for each in releases])


def read_release(text: str) -> Release:
    title, rest = text.split("\n", 1)
    items = re.split(r"^- ", rest, flags=re.MULTILINE)[1:]
    return Release(title.strip(), [in_one_line(item) for item in items])


def in_one_line(text: str) -> SafeString:
    return with_marks(" ".join(text.split()), address)


def address(link: str) -> str | None:
    return address_of(link.removeprefix("docs/"), PurePosixPath())


@cache
def shown_changes() -> Changes:
    return read_changelog((settings.BASE_DIR / "CHANGELOG.md").read_text())


Words = dict[str, Any]
ABOUT = settings.BASE_DIR / "templates" / "docs" / "about.md"
ERRORS = "## Errors\n"


class OwnPage(NamedTuple):
    template: str
    words: Callable[[Filled], Words]
    """The same for all visitors, apart from the address and the symbol of the samples."""


def about_rest() -> tuple[Rendered, Rendered]:
    """The introduction of the OpenAPI document: conventions, and errors, which have a page of their own."""
    before, _, rest = ABOUT.read_text().partition(ERRORS)
    errors, _, after = rest.partition("\n## ")
    return rendered(f"{before}## {after}"), with_code_anchors(rendered(errors))


def with_code_anchors(text: Rendered) -> Rendered:
    """Gives the row of each code an anchor, to which the pages of the endpoints link."""
    html = re.sub(r"<tr>\s*<td><code>(\w+)</code></td>", r'<tr id="\1"><td><code>\1</code></td>', text.html)
    return text._replace(html=mark_safe(html))  # noqa: S308 - the renderer has escaped it


def rendered(text: str) -> Rendered:
    return render_markdown(text, lambda link: link)


def quick_start(values: Filled) -> Words:
    labels = {"install": "Install", "quote": "Ask", "stream": "Listen", "history": "History"}
    return {name: from_templates(name, label, values) for name, label in labels.items()}


def clients(values: Filled) -> Words:
    labels = {"install": "Install", "errors": "Errors", "resume": "Streams", "history": "History"}
    tabs = {name: from_templates(name, label, values) for name, label in labels.items()}
    return {**tabs, "wheel": wheel_name()}


def without_client(values: Filled) -> Words:
    labels = {"plain": "Requests", "plain-stream": "Streams", "plain-history": "History"}
    return {name.replace("-", "_"): from_templates(name, label, values) for name, label in labels.items()}


def rest(values: Filled) -> Words:
    about = about_rest()[0]
    headings = [*about.headings, DocumentHeading("Endpoints", "endpoints", 2)]
    return {"about": about, "headings": headings, "groups": reference.groups()}


def errors(values: Filled) -> Words:
    return {"about": about_rest()[1], "refusals": reference.shared_refusals()}


def stream(name: str) -> Callable[[Filled], Words]:
    def words(values: Filled) -> Words:
        found = stream_reference.described_streams()[name]
        return {"stream": found, "subscribe": of_stream(found, values)}

    return words


OWN_PAGES = {
    "/docs": OwnPage("docs/start.html", quick_start),
    "/docs/clients": OwnPage("docs/clients.html", clients),
    "/docs/without-client": OwnPage("docs/without_client.html", without_client),
    "/docs/computed": OwnPage("docs/computed.html", lambda values: {"candle_price": settings.CANDLE_PRICE}),
    "/docs/api": OwnPage("docs/rest/conventions.html", rest),
    "/docs/api/headers": OwnPage("docs/rest/headers.html", lambda values: {"headers": reference.headers()}),
    "/docs/api/errors": OwnPage("docs/rest/errors.html", errors),
    "/docs/streams": OwnPage(
        "docs/streams/connecting.html",
        lambda values: {
            **stream_reference.shared_words(),
            "sample": from_templates("stream", "Connect", values),
        },
    ),
    "/docs/streams/messages": OwnPage(
        "docs/streams/messages.html", lambda values: stream_reference.shared_words()
    ),
    "/docs/streams/errors": OwnPage(
        "docs/streams/errors.html", lambda values: stream_reference.shared_words()
    ),
    **{
        f"/docs/streams/{name}": OwnPage("docs/streams/stream.html", stream(name))
        for name in (*(kind.name for kind in KINDS), TOGETHER)
    },
    "/docs/changelog": OwnPage("docs/changelog.html", lambda values: {"changes": shown_changes()}),
}
