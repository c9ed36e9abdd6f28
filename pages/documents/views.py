"""/docs: one shell around the pages written for the site, the references and the project's own documents."""

from typing import Any

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.middleware.csrf import get_token
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from accounts.models import TIER_LIMITS, Tier

from . import files
from .contents import place_of, sections
from .own_pages import OWN_PAGES
from .reference import operations
from .reference.streams import described_streams
from .samples import console, filled, of_operation

Words = dict[str, Any]


def render_page(request: HttpRequest, template: str, words: Words) -> HttpResponse:
    path = request.path.rstrip("/")
    return render(request, template, {**words, "sections": sections(), "place": place_of(path), "here": path})


def has_page_key(request: HttpRequest) -> bool:
    """The page's own requests need a key, which somebody without an account has in the demo only."""
    return settings.PUBLIC_TERMINAL or request.user.is_authenticated


def trial(request: HttpRequest) -> Words:
    """What `try it` needs to send a request or open a socket."""
    may = has_page_key(request)
    return {"has_page_key": may, "trial": {"csrf": get_token(request) if may else "", "hasPageKey": may}}


@require_safe
def own_page(request: HttpRequest) -> HttpResponse:
    path = request.path.rstrip("/")
    page = OWN_PAGES.get(path)
    if page is None:
        raise Http404
    values = filled(request)
    words = {**page.words(values), **values._asdict(), "demo": settings.DEMO}
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
    words = {"operation": operation, "request_tabs": of_operation(operation, values), **values._asdict()}
    return render_page(request, "docs/rest/operation.html", {**words, **trial(request)})


@require_safe
def document_page(request: HttpRequest, name: str) -> HttpResponse:
    if name.endswith(".md"):
        # As the files link to each other.
        return redirect("document", name.removesuffix(".md"))
    if name not in files.names():
        raise Http404
    return render_page(request, "docs/document.html", {"document": files.document(name)})


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
    words = {**values._asdict(), "streams": streams, "sections": sections()}
    return render(request, "docs/llms.txt", words, content_type="text/plain; charset=utf-8")
