"""The table of contents: every document of docs/ once, and each of its pages answers."""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from pathlib import Path

import pytest
from django.test import Client

from pages.documents import files
from pages.documents.contents import sections
from pages.documents.own_pages import OWN_PAGES

ENTRIES = [entry for section in sections() for entry in section.entries]
PATHS = [entry.path for entry in ENTRIES]
DOCUMENTS = sorted(str(path.relative_to("docs").with_suffix("")) for path in Path("docs").rglob("*.md"))
pytestmark = pytest.mark.django_db


def test_sections_stand_in_reading_order() -> None:
    names = ["Start", "Guides", "REST API", "Streams", "Operate", "Project"]
    assert [section.title for section in sections()] == names


def test_every_document_and_every_page_of_the_site_is_listed_once_and_none_hides_another() -> None:
    assert max(Counter(PATHS).values()) == 1
    assert {f"/docs/{name}" for name in DOCUMENTS} | OWN_PAGES.keys() <= set(PATHS)
    assert {f"/docs/{name}" for name in files.names()} & OWN_PAGES.keys() == set()


@pytest.mark.parametrize("path", PATHS)
def test_page_answers_is_marked_in_the_contents_and_every_link_of_it_leads_somewhere(path: str) -> None:
    answer = Client().get(path)
    assert answer.status_code == 200
    assert re.findall(r'href="([^"]+)" aria-current="page"', answer.text) == [path]
    targets = set(re.findall(r'<a (?:[^>]* )?href="((?:/docs|#)[^"]*)"', answer.text))
    assert targets
    assert [target for target in targets if not leads_somewhere(target, path, answer.text)] == []


def test_every_page_has_a_description_of_its_own() -> None:
    heads = {
        path: re.findall(r'<meta name="description" content="([^"]*)">', Client().get(path).text)
        for path in PATHS
    }
    found = {path: unescape(description) for path, (description,) in heads.items()}
    assert len(set(found.values())) == len(PATHS)
    assert [text for text in found.values() if not 20 <= len(text) <= 160 or "<" in text or "`" in text] == []


def leads_somewhere(target: str, here: str, page: str) -> bool:
    path, _, anchor = target.partition("#")
    if path and path != here:
        if path not in anchors:
            answer = Client().get(path)
            anchors[path] = (
                set(re.findall(r' id="([^"]+)"', answer.text)) if answer.status_code == 200 else None
            )
        known = anchors[path]
    else:
        known = set(re.findall(r' id="([^"]+)"', page))
    return known is not None and (not anchor or anchor in known)


anchors: dict[str, set[str] | None] = {}


def test_pages_lead_to_those_before_and_after() -> None:
    page = Client().get("/docs/clients").text
    assert re.findall(r'rel="(prev|next)" href="([^"]+)"', page) == [
        ("prev", "/docs"),
        ("next", "/docs/without-client"),
    ]


@pytest.mark.parametrize(
    "path", ["/docs/none", "/docs/operate", "/docs/api/none", "/docs/streams/none", "/docs/x.png"]
)
def test_what_is_not_there_is_the_page_of_404(path: str) -> None:
    answer = Client().get(path, headers={"Accept": "text/html"})
    assert answer.status_code == 404
    assert "There is nothing here" in answer.text


def test_files_of_the_folder_are_served_and_nothing_beside_it() -> None:
    for path in ("/docs/../manage.py", "/docs/%2e%2e/README.md", "/docs/operate/../../README"):
        assert Client().get(path).status_code in (302, 404)
    assert Client().get("/docs/operate/install.md")["Location"] == "/docs/operate/install"
    answer = Client().get("/docs/images/soak.svg")
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/svg+xml")
    assert files.image("images/terminal.png") is not None
    for name in ("signals.md", "../static/tickwire.svg", "images/none.png"):
        assert files.image(name) is None
