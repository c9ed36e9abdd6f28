"""The index of the documentation's search, one list of passages that a browser loads once, and synonyms."""

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

from . import reference, rendering
from .contents import ContentsSection, Entry, sections
from .own_pages import OWN_PAGES
from .rendering import Passage, Rendered
from .samples import Filled

# Words that readers search for but that a passage, or its title, does not use.
STREAMS = "streams websocket websockets ws"
ALSO_CALLED = {
    "/docs#key": "token sign up register get a key",
    "/docs/clients": "sdk sdks library libraries package python typescript javascript node client clients",
    "/docs/clients#install": "pip npm install python typescript javascript",
    "/docs/without-client": "curl wscat websocat raw",
    "/docs/guides/start#run-the-demo": "sandbox demo test environment trial playground",
    "/docs/guides/streams#test-your-client": "sandbox simulate chaos test",
    "/docs/api#conventions": "authentication authenticate authorization auth api key bearer token header"
    " idempotency idempotent webhook webhooks base url date format read only",
    "/docs/api#pagination": "pagination paginate paging page pages cursor next limit offset",
    "/docs/api#browsers": "cors browser browsers cross origin",
    "/docs/api#limits": "rate limit limits limiting ratelimit throttling throttle quota allowance 429 tiers",
    "/docs/api#versions": "version versioning deprecation compatibility breaking changes",
    "/docs/api#endpoints": "postman insomnia openapi swagger specification spec schema codegen generator",
    "/docs/api/headers": "etag caching cache conditional",
    "/docs/api/errors": "error errors code codes status http exceptions unauthorized forbidden",
    "/docs/api/getHistory": "historical history data ohlc ohlcv bars candles candlesticks backfill timeframe"
    " timeframes interval csv export",
    "/docs/api/getMarket": "chart candles",
    "/docs/api/getTicks": "tick ticks gap fill missed",
    "/docs/api/getQuote": "price bid ask ticker last",
    "/docs/api/listQuotes": "prices tickers batch bulk",
    "/docs/api/listSymbols": "instruments tickers pairs symbols assets markets",
    "/docs/api/getArchiveFile": "parquet tick download",
    "/docs/streams": f"asyncapi {STREAMS}",
    "/docs/streams#connect": f"authentication authenticate auth api key handshake connect {STREAMS}",
    "/docs/streams#go-on": f"reconnect reconnecting reconnection resume backoff lost replay {STREAMS}",
    "/docs/streams/messages#heartbeat": "keepalive keep alive",
    "/docs/streams/errors": f"websocket error errors codes close {STREAMS}",
    "/docs/operate/scale": "scaling cluster horizontal load balancer kubernetes",
    "/docs/operate/install": "deploy deployment docker self host hosting",
}


def also_called(entry: Entry, address: str) -> str:
    if address in ALSO_CALLED:
        own = ALSO_CALLED[address]
    else:
        own = STREAMS if address.startswith("/docs/streams") and "#" not in address else ""
    operation = entry.path.removeprefix("/docs/api/")
    return f"{operation} {own}".strip() if operation in reference.operations() else own


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
    """Synonyms."""


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
    if name in rendering.names():
        yield from of_document(section, entry, rendering.document(name))
    elif entry.path.startswith("/docs/api/") and name.partition("/")[2] in reference.operations():
        yield of_operation(section, entry, reference.operations()[name.partition("/")[2]])
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


def of_operation(section: ContentsSection, entry: Entry, operation: reference.Operation) -> IndexRow:
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
        summary = shortened(plain(text), LONGEST_HERE)
        yield IndexRow(section.title, entry.title, plain(title) or plain(heading), address, summary, names)


def plain(html: str) -> str:
    """Only what makes a new line separates words."""
    return " ".join(unescape(strip_tags(INLINE.sub("", html).replace("<", " <"))).split())
