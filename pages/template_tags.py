"""Tags of templates: how users reach the operator, commands to type, and the facts of link previews."""

from __future__ import annotations

import re
from html import unescape
from typing import Any

from django import template
from django.conf import settings
from django.utils.safestring import SafeString

from core.program import command

register = template.Library()
TITLE = re.compile(r"<title>(.*?) · Tickwire</title>", re.DOTALL)
DESCRIPTION = re.compile(r'<meta name="description" content="([^"]*)">')


@register.simple_tag
def contact_email() -> str:
    """Empty where there is no such address."""
    address: str = settings.CONTACT_EMAIL
    return address


@register.simple_block_tag(takes_context=True)
def previewed(context: Any, content: str) -> SafeString:
    """Returns this part of the head as it is, and keeps its title and description for the tags of the
    preview, because a template cannot render a block twice."""
    for name, pattern in (("preview_title", TITLE), ("preview_description", DESCRIPTION)):
        found = pattern.search(content)
        context[name] = unescape(found[1]) if found else ""
    return SafeString(content)


# What to type, as it works here: `{% command "issue_key NAME" %}`.
register.simple_tag(command)
