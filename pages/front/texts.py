"""/terms and /privacy: texts that staff edit in the back office."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from pages.documents.rendering import render_markdown
from pages.models import SiteText


@require_safe
def site_text(request: HttpRequest, name: str) -> HttpResponse:
    text = get_object_or_404(SiteText, name=name)
    # Staff link to wherever they like.
    shown = render_markdown(text.body, address=lambda link: link)
    return render(request, "front/text.html", {"text": text, "shown": shown})
