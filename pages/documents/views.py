"""/docs: one shell around the pages written for the site, the references and the project's own documents."""

from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe
from django.views.decorators.http import require_safe

from accounts.models import TIER_LIMITS, Tier

from . import files
from .contents import GUIDES, place_of, sections
from .descriptions import of_document, of_own_page
from .own_pages import OWN_PAGES
from .packages import wheel_name
from .reference import operations
from .reference.streams import described_streams
from .samples import Filled, console, filled, of_operation
from .trying import OWN_KEY_ONLY, inputs, known_values, trial

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
    operation = operations.operations().get(name)
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
    if name not in files.names():
        raise Http404
    document = files.document(name)
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
    found = files.image(name)
    if found is None:
        raise Http404
    headers = {"Cache-Control": "public, max-age=300"}
    return HttpResponse(found.read_bytes(), content_type=files.IMAGES[found.suffix], headers=headers)


@require_safe
def llms(request: HttpRequest) -> HttpResponse:
    values = filled(request)
    streams = [f"{values.ws}{stream.path}" for stream in described_streams().values()]
    words = {**values._asdict(), "streams": streams, "sections": sections(), "wheel": wheel_name()}
    return render(request, "docs/llms.txt", words, content_type="text/plain; charset=utf-8")
