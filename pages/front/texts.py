"""/terms and /privacy: texts that staff edit in the back office."""

from pathlib import Path
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.views.decorators.http import require_safe

from pages.documents.rendering import render_markdown
from pages.models import SiteText

FIRST_TEXTS = Path(__file__).parent / "first_texts"


def first_text(name: str) -> str:
    return (FIRST_TEXTS / f"{name}.md").read_text()


def write_first_texts(using: str, apps: Any, **_: Any) -> None:
    """After migrations, where a text is missing. Later versions leave it as it is."""
    try:
        texts = apps.get_model("pages", "SiteText")._default_manager.using(using)
    except LookupError:
        return
    for name in SiteText.Name.values:
        texts.get_or_create(name=name, defaults={"body": first_text(name)})


@require_safe
def site_text(request: HttpRequest, name: str) -> HttpResponse:
    text = get_object_or_404(SiteText, name=name)
    # Staff link to wherever they like.
    shown = render_markdown(text.body, address=lambda link: link)
    return render(request, "front/text.html", {"text": text, "shown": shown})
