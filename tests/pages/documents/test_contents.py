"""The table of contents: every document of docs/ once, and each of its pages answers."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from django.test import Client

from pages.documents import files
from pages.documents.contents import place_of, sections
from pages.documents.own_pages import OWN_PAGES

ENTRIES = [entry for section in sections() for entry in section.entries]
PATHS = [entry.path for entry in ENTRIES]
DOCUMENTS = sorted(str(path.relative_to("docs").with_suffix("")) for path in Path("docs").rglob("*.md"))
pytestmark = pytest.mark.django_db


def test_sections_stand_in_reading_order() -> None:
    names = ["Start", "Guides", "REST API", "Streams", "Operate", "Project"]
    assert [section.title for section in sections()] == names


def test_every_document_of_the_project_is_listed_once() -> None:
    listed = Counter(PATHS)
    assert {name: listed[f"/docs/{name}"] for name in DOCUMENTS} == dict.fromkeys(DOCUMENTS, 1)


def test_every_page_of_the_site_is_listed_once() -> None:
    assert max(Counter(PATHS).values()) == 1
    assert OWN_PAGES.keys() <= set(PATHS)


def test_no_document_is_hidden_by_a_page_of_the_site() -> None:
    assert {f"/docs/{name}" for name in files.names()} & OWN_PAGES.keys() == set()


@pytest.mark.parametrize("path", PATHS)
def test_page_answers_and_is_marked_in_the_contents(path: str) -> None:
    answer = Client().get(path)
    assert answer.status_code == 200
    assert re.findall(r'href="([^"]+)" aria-current="page"', answer.text) == [path]


@pytest.mark.parametrize("path", PATHS)
def test_every_link_of_a_page_leads_somewhere(path: str) -> None:
    page = Client().get(path).text
    targets = set(re.findall(r'<a (?:[^>]* )?href="((?:/docs|#)[^"]*)"', page))
    lost = [target for target in targets if not leads_somewhere(target, path, page)]
    assert targets
    assert lost == []


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
    place = place_of("/docs/clients")
    assert place is not None
    assert place.before is not None
    assert place.after is not None
    assert (place.before.path, place.after.path) == ("/docs", "/docs/without-client")
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


@pytest.mark.parametrize(
    "path", ["/docs/../manage.py", "/docs/%2e%2e/README.md", "/docs/operate/../../README"]
)
def test_nothing_beside_the_folder_is_served(path: str) -> None:
    assert Client().get(path).status_code in (302, 404)


def test_image_of_a_document_is_served() -> None:
    answer = Client().get("/docs/images/soak.svg")
    assert (answer.status_code, answer["Content-Type"]) == (200, "image/svg+xml")


def test_name_of_a_file_leads_to_its_page() -> None:
    assert Client().get("/docs/operate/install.md")["Location"] == "/docs/operate/install"
