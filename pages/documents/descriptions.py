"""What the head of a page says of it, and so the preview of a link to it: its first paragraph."""

import re
from functools import cache

from django.template.loader import render_to_string

from . import files
from .own_pages import OWN_PAGES
from .samples import Filled
from .search import ARTICLE, plain, shortened

LONGEST = 160
PARAGRAPH = re.compile(r"<p(?: class=\"lead\")?>(.*?)</p>", re.DOTALL)


def first_paragraph(html: str) -> str:
    found = PARAGRAPH.search(html)
    return shortened(plain(found[1]), LONGEST) if found else ""


@cache
def of_own_page(path: str) -> str:
    """The same for everybody, so it is read once, without an address and a symbol."""
    page = OWN_PAGES[path]
    article = ARTICLE.search(render_to_string(page.template, page.words(Filled("", "", ""))))
    return first_paragraph(article[1]) if article else ""


@cache
def of_document(name: str) -> str:
    return first_paragraph(files.document(name).html)
