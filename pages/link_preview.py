"""What previews of links show of a page: the title and the description that it has itself."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from django import template
from django.utils.safestring import SafeString

register = template.Library()
TITLE = re.compile(r"<title>(.*?) · Tickwire</title>", re.DOTALL)
DESCRIPTION = re.compile(r'<meta name="description" content="([^"]*)">')


@register.simple_block_tag(takes_context=True)
def previewed(context: Any, content: str) -> SafeString:
    """Leaves the part of the head as it is, and keeps what it says for the tags of the preview: a template
    cannot render a block twice."""
    for name, pattern in (("preview_title", TITLE), ("preview_description", DESCRIPTION)):
        found = pattern.search(content)
        context[name] = unescape(found[1]) if found else ""
    return SafeString(content)
