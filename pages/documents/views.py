"""/docs: one shell around the pages written for the site, the references and the project's own documents."""

import re
from functools import cache
from typing import Any, NamedTuple

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe

from accounts.models import TIER_LIMITS, Tier
from market.streams.protocol.messages import KINDS
from signals_feed.models import Signal

from . import reference, rendering
from .contents import GUIDES, place_of, sections
from .own_pages import OWN_PAGES
from .packages import wheel_name
from .reference import Operation, Parameter
from .samples import Filled, console, filled, of_operation
from .search import ARTICLE, plain, shortened

# What the head of a page says of it, and so the preview of a link to it: its first paragraph.
LONGEST = 160
PARAGRAPH = re.compile(r"<p(?: class=\"lead\")?>(.*?)</p>", re.DOTALL)


def first_paragraph(html: str) -> str:
    found = PARAGRAPH.search(html)
    return shortened(plain(found[1]), LONGEST) if found else ""


@cache
def of_own_page(path: str) -> str:
    """The same for all visitors, so it is read once, without an address and a symbol."""
    page = OWN_PAGES[path]
    article = ARTICLE.search(render_to_string(page.template, page.words(Filled("", "", ""))))
    return first_paragraph(article[1]) if article else ""


@cache
def of_document(name: str) -> str:
    return first_paragraph(rendering.document(name).html)


# The values of `try it`, so that a reader who only presses Send gets an answer.
OWN_KEY_ONLY = {"Archive"}
"""The groups of endpoints that pages may not read."""
LISTED_BY = {"id": "listSignals", "user": "listSignals", "path": "listArchive"}


class TrialInput(NamedTuple):
    parameter: Parameter
    value: str
    listed_by: str
    """The endpoint that lists such values; empty where no value has to be looked up."""


def has_page_key(request: HttpRequest) -> bool:
    """The page's own requests need a key, which a reader without an account has only in the demo."""
    return settings.PUBLIC_TERMINAL or request.user.is_authenticated


def trial(request: HttpRequest) -> dict[str, Any]:
    """What `try it` needs to send a request or open a socket."""
    may = has_page_key(request)
    return {"has_page_key": may, "trial": {"csrf": get_token(request) if may else "", "hasPageKey": may}}


def known_values(operation: Operation, symbol: str) -> dict[str, str]:
    """Of the parameters in its path, those for which this service has an answer now."""
    needed = {each.name for each in operation.parameters if each.is_required}
    known = {"symbol": symbol}
    if needed & {"id", "user"} and (signal := example_signal()):
        known |= {"id": str(signal.pk), "user": signal.user.get_username()}
    return known


def example_signal() -> Signal | None:
    """A closed one, if there is any: its proof has every part."""
    feed = Signal.objects.for_feed().select_related("user")
    return feed.with_status("closed").first() or feed.first()


def inputs(operation: Operation, known: dict[str, str]) -> list[TrialInput]:
    return [trial_input(each, known) for each in operation.parameters]


def trial_input(parameter: Parameter, known: dict[str, str]) -> TrialInput:
    if not parameter.is_required:
        return TrialInput(parameter, "", "")
    return TrialInput(parameter, known.get(parameter.name, ""), LISTED_BY.get(parameter.name, ""))


Words = dict[str, Any]


def render_page(request: HttpRequest, template: str, words: Words) -> HttpResponse:
    path = request.path.rstrip("/")
    return render(request, template, {**words, "sections": sections(), "place": place_of(path), "here": path})


@require_safe
def own_page(request: HttpRequest) -> HttpResponse:
    path = request.path.rstrip("/")
    page = OWN_PAGES.get(path)
    if page is None:
        raise Http404
    values = filled(request)
    words = {**page.words(values), **values._asdict(), "demo": settings.DEMO}
    words |= {"description": of_own_page(path)}
    if path in ("/docs", "/docs/streams"):
        words |= {"tiers": Tier.objects.all(), "tier_limits": TIER_LIMITS.values()}
    if path.startswith("/docs/streams"):
        words |= trial(request) | console(path.rpartition("/")[2], values.symbol)
    return render_page(request, page.template, words)


@require_safe
def operation_page(request: HttpRequest, name: str) -> HttpResponse:
    operation = reference.operations().get(name)
    if operation is None:
        raise Http404
    values = filled(request)
    known = known_values(operation, values.symbol)
    words = {"operation": operation, "request_tabs": of_operation(operation, values, known)}
    tried = {"inputs": inputs(operation, known), "is_for_pages": operation.tag not in OWN_KEY_ONLY}
    tried |= {"demo": settings.DEMO, "description": f"{operation.summary}."}
    return render_page(request, "docs/rest/operation.html", {**words, **trial(request), **tried})


@require_safe
def document_page(request: HttpRequest, name: str) -> HttpResponse:
    if name.endswith(".md"):
        # As the files link to each other.
        return redirect("document", name.removesuffix(".md"))
    if name not in rendering.names():
        raise Http404
    document = rendering.document(name)
    if name in GUIDES:
        document = document._replace(html=at_this_address(document.html, filled(request)))
    words = {"document": document, "description": of_document(name)}
    return render_page(request, "docs/document.html", words)


def at_this_address(html: str, values: Filled) -> SafeString:
    """Guides are written for a service on the reader's own machine, and are read on any."""
    here = html.replace("http://127.0.0.1:8000", escape(values.base))
    return mark_safe(here.replace("ws://127.0.0.1:8000", escape(values.ws)))  # noqa: S308 - escaped


@require_safe
def document_image(request: HttpRequest, name: str) -> HttpResponse:
    found = rendering.image(name)
    if found is None:
        raise Http404
    headers = {"Cache-Control": "public, max-age=300"}
    return HttpResponse(found.read_bytes(), content_type=rendering.IMAGES[found.suffix], headers=headers)


@require_safe
def llms(request: HttpRequest) -> HttpResponse:
    values = filled(request)
    streams = [f"{values.ws}{kind.path}" for kind in KINDS]
    words = {**values._asdict(), "streams": streams, "sections": sections(), "wheel": wheel_name()}
    return render(request, "docs/llms.txt", words, content_type="text/plain; charset=utf-8")
