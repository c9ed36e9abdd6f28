"""What was typed into a form whose session ended before it was sent, so that it can be shown once more."""

from __future__ import annotations

import re
from typing import NamedTuple

from django.http import HttpRequest
from django.utils.text import capfirst

# Buttons, marks, the counts of a table of forms, and what no page shows.
NOT_TYPED = re.compile(
    r"_.*|csrfmiddlewaretoken|act|action|answered|index|item|next|seen|select_across"
    r"|initial-.*|.*_FORMS|.*-__prefix__-.*|.*password.*",
    re.DOTALL,
)


class Typed(NamedTuple):
    name: str
    text: str


def typed_into(request: HttpRequest) -> list[Typed]:
    return [
        Typed(capfirst(re.sub(r"_[01]$|[-_]", " ", name).strip()), text)
        for name, texts in request.POST.lists()
        for text in map(str, texts)
        if not NOT_TYPED.fullmatch(name) and text.strip()
    ]


def is_page_of_a_visitor(request: HttpRequest) -> bool:
    """A form that a browser sends as a page, by somebody who is not logged in."""
    is_page = request.headers.get("Sec-Fetch-Mode", "navigate") == "navigate"
    return request.method == "POST" and is_page and not request.user.is_authenticated
