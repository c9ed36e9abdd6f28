"""What the head of each page of the documentation says of it."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

from pages.documents.contents import sections

PATHS = [entry.path for section in sections() for entry in section.entries]
pytestmark = pytest.mark.django_db


def description(path: str) -> str:
    (found,) = re.findall(r'<meta name="description" content="([^"]*)">', Client().get(path).text)
    return unescape(found)


def test_every_page_has_a_description_of_its_own() -> None:
    found = {path: description(path) for path in PATHS}
    assert len(set(found.values())) == len(PATHS)
    assert not [
        path for path, text in found.items() if not 20 <= len(text) <= 160 or "<" in text or "`" in text
    ]
