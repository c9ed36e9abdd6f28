"""What the search of the documentation looks in: one list of passages, which a browser loads once."""

import re
from collections.abc import Iterator
from functools import cache
from html import unescape
from typing import NamedTuple

from django.http import HttpRequest, HttpResponseBase
from django.template.loader import render_to_string
from django.utils.html import strip_tags
from django.views.decorators.http import require_safe

from core.contract.answers import Document, answer_document, encode_document

from . import files
from .contents import ContentsSection, Entry, sections
from .own_pages import OWN_PAGES
from .reference import operations
from .rendering import Passage, Rendered
from .samples import Filled
from .synonyms import also_called

LONGEST = 700
"""Characters of a passage of a document: a reader finds it by its first sentences."""
LONGEST_HERE = 4000
"""The same of the site's own pages, whose tables of fields and codes are looked for by any word."""


class IndexRow(NamedTuple):
    """Of one passage: the page's section and title, its own heading, where it is, and what it says."""

    section: str
    page: str
    heading: str
    address: str
    text: str
    names: str = ""
    """Of the parameters, fields and codes that it explains."""
    called: str = ""
    """Other words for what it is about."""


@require_safe
def search_index(request: HttpRequest) -> HttpResponseBase:
    return answer_document(request, index())


ELSEWHERE = (
    IndexRow(
        "This site",
        "Pricing",
        "",
        "/pricing",
        "The tiers, and what each of them allows: requests a minute, streams at once, AI calls a day and "
        "the archive.",
        called="prices price cost plans tiers subscription",
    ),
    IndexRow(
        "This site",
        "Status",
        "",
        "/status",
        "The age of the prices, latency by minute, uptime and incidents of this service.",
        called="uptime incidents outage latency down",
    ),
)
"""Pages that readers look for here, although they are no part of the documentation."""


@cache
def index() -> Document:
    own = [
        each._replace(called=also_called(entry, each.address))
        for section in sections()
        for entry in section.entries
        for each in of(section, entry)
    ]
    return encode_document([[*each] for each in (*own, *ELSEWHERE)])


def of(section: ContentsSection, entry: Entry) -> Iterator[IndexRow]:
    name = entry.path.removeprefix("/docs/")
    if name in files.names():
        yield from of_document(section, entry, files.document(name))
    elif entry.path.startswith("/docs/api/") and name.partition("/")[2] in operations.operations():
        yield of_operation(section, entry, operations.operations()[name.partition("/")[2]])
    else:
        yield from of_page(section, entry)


def of_document(section: ContentsSection, entry: Entry, read: Rendered) -> Iterator[IndexRow]:
    for passage in read.passages:
        is_title = passage.heading.level == 1
        yield found(section, entry, passage, "" if is_title else passage.heading.title)


def found(section: ContentsSection, entry: Entry, passage: Passage, heading: str) -> IndexRow:
    address = f"{entry.path}#{passage.heading.anchor}" if heading else entry.path
    return IndexRow(section.title, entry.title, heading, address, shortened(passage.text, LONGEST))


def shortened(text: str, longest: int) -> str:
    """A longer text ends with a whole word and an ellipsis."""
    return text if len(text) <= longest else text[: longest - 1].rpartition(" ")[0] + " …"


def of_operation(section: ContentsSection, entry: Entry, operation: operations.Operation) -> IndexRow:
    named = " ".join(f"{each.name} {strip_tags(each.about)}" for each in operation.parameters)
    words = f"GET {operation.path} {operation.summary}. {strip_tags(operation.about)} {named}"
    names = [
        operation.path,
        *(each.name for each in operation.parameters),
        *(each.name.rpartition(".")[2] for each in operation.fields),
        *(code for refusals in operation.own_refusals for code in refusals.codes),
    ]
    text = shortened(" ".join(unescape(words).split()), LONGEST_HERE)
    return IndexRow(section.title, entry.title, "", entry.path, text, " ".join(dict.fromkeys(names)))


ARTICLE = re.compile(r'<article class="doc[^"]*">(.*)</article>', re.DOTALL)
LEFT_OUT = re.compile(r'<(figure|form|nav|script)\b.*?</\1>|<div class="choice".*?</div>', re.DOTALL)
ROW_NAME = re.compile(r'<(?:th scope="row"|tr id="\w+"><td)><code>([^<]+)</code>')
INLINE = re.compile(r"</?(?:a|b|code|em|span|strong)\b[^>]*>")
HEADING = re.compile(r'<h[23] id="([^"]+)"[^>]*>(.*?)</h[23]>', re.DOTALL)


def of_page(section: ContentsSection, entry: Entry) -> Iterator[IndexRow]:
    """As a stranger reads it, without its samples."""
    page = OWN_PAGES[entry.path]
    html = render_to_string(page.template, page.words(Filled("", "", ""))).replace("<wbr>", "")
    article = ARTICLE.search(html)
    if article is None:
        return
    first, *rest = HEADING.split(LEFT_OUT.sub("", article[1]))
    names = " ".join(ROW_NAME.findall(first))
    yield IndexRow(section.title, entry.title, "", entry.path, shortened(plain(first), LONGEST_HERE), names)
    for anchor, heading, text in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        address = f"{entry.path}#{anchor}"
        # The title of a message and the word on the wire are the same word twice.
        title, _, wire = heading.partition("<code>")
        own = [plain(wire), *(name.rpartition(".")[2] for name in ROW_NAME.findall(text))]
        names = " ".join(dict.fromkeys(filter(None, own)))
        said = shortened(plain(text), LONGEST_HERE)
        yield IndexRow(section.title, entry.title, plain(title) or plain(heading), address, said, names)


def plain(html: str) -> str:
    """Only what makes a new line separates words."""
    return " ".join(unescape(strip_tags(INLINE.sub("", html).replace("<", " <"))).split())
