"""Every URL there is, by the URLconf."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from django.urls import URLPattern, get_resolver


class Url(NamedTuple):
    pattern: str
    name: str
    view: Any


def every_url() -> list[Url]:
    return list(_walk(get_resolver(), ""))


def _walk(resolver: Any, before: str) -> Iterator[Url]:
    for each in resolver.url_patterns:
        pattern = f"{before}{each.pattern}"
        if isinstance(each, URLPattern):
            yield Url(pattern, each.name or "", each.callback)
        else:
            yield from _walk(each, pattern)


def admin_urls() -> list[Url]:
    return [url for url in every_url() if url.pattern.startswith("admin/")]


def other_urls() -> list[Url]:
    return [url for url in every_url() if not url.pattern.startswith("admin/")]
