"""The trail in the head of a page: lists are called as in the sidebar."""

from typing import Any

from django import template
from django.utils.text import capfirst

from .overview import GROUPS, link_to

register = template.Library()


@register.filter
def as_in_sidebar(parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    names = {link_to(page): (group, title) for group, entries in GROUPS.items() for title, page, _ in entries}
    place = next((index for index, part in enumerate(parts) if str(part.get("link")) in names), None)
    if place is None:
        return [{**part, "title": capfirst(str(part["title"]))} for part in parts]
    group, title = names[str(parts[place]["link"])]
    return [{"title": group}, {**parts[place], "title": title}, *parts[place + 1 :]]
