"""The table of contents: every document of docs/ once, and each of its pages answers. Markdown as it is
shown, and the index of the search."""

from __future__ import annotations

import re
from collections import Counter
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from pages.documents import rendering
from pages.documents.contents import sections
from pages.documents.own_pages import OWN_PAGES
from pages.documents.rendering import anchor_of, highlighted, render_markdown
from pages.documents.search import LONGEST_HERE

pytestmark = pytest.mark.django_db

ENTRIES = [entry for section in sections() for entry in section.entries]
PATHS = [entry.path for entry in ENTRIES]
DOCUMENTS = sorted(str(path.relative_to("docs").with_suffix("")) for path in Path("docs").rglob("*.md"))


def test_every_document_and_every_page_of_the_site_is_listed_once_and_none_hides_another() -> None:
    assert max(Counter(PATHS).values()) == 1
    assert {f"/docs/{name}" for name in DOCUMENTS} | OWN_PAGES.keys() <= set(PATHS)
    assert {f"/docs/{name}" for name in rendering.names()} & OWN_PAGES.keys() == set()


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
    assert rendering.image("images/terminal.png") is not None
    for name in ("signals.md", "../static/tickwire.svg", "images/none.png"):
        assert rendering.image(name) is None


def shown(text: str) -> str:
    return render_markdown(text, lambda link: None if link.startswith("..") else f"/docs/{link}").html


def test_headings_have_the_anchors_of_github_and_each_its_own() -> None:
    assert anchor_of("When a minute is closed: a `tick`, later?") == "when-a-minute-is-closed-a-tick-later"
    read = render_markdown("# T\n\n## Same\n\n## Same\n", str)
    assert [heading.anchor for heading in read.headings] == ["same", "same-1"]


@pytest.mark.parametrize(
    ("text", "html"),
    [
        ("a <script>b</script>\n", "<p>a &lt;script&gt;b&lt;/script&gt;</p>"),
        ("<!-- begin -->\nWords.\n\n- item\n<!-- end -->\n", "<p>Words.</p>\n<ul>\n<li>item</li>\n</ul>"),
        # A link that leads nowhere on the site is text.
        (
            "[the *code*](../deploy/x), [this](feeds)",
            '<p>the <em>code</em>, <a href="/docs/feeds">this</a></p>',
        ),
        ("| b |\n|--:|\n| 2 |\n", '<td class="num right">2</td>'),
    ],
    ids=["HTML", "comment", "links", "aligned cells"],
)
def test_text_is_shown_without_html_comments_or_styles_of_its_own(text: str, html: str) -> None:
    assert html in shown(text)


def test_code_is_coloured_by_class_alone_and_escaped() -> None:
    html = shown("```python\nx = 'a<b'  # why\n```\n")
    assert 'class="h-s">' in html
    assert "&lt;b" in html
    assert "style" not in html
    for language in ("", "nobody-knows-this"):
        assert highlighted("a < b", language) == "a &lt; b"


def test_passages_hold_the_text_below_their_heading() -> None:
    read = render_markdown("# Title\n\nfirst\n\n## Part\n\na `b`\nc\n\n| x |\n|---|\n| y |\n", str)
    assert [(each.heading.title, each.text) for each in read.passages] == [
        ("Title", "first"),
        ("Part", "a b c x y"),
    ]


MOST_BYTES = 350_000


@pytest.fixture(scope="module")
def passages() -> Any:
    return Client().get("/docs/search.json").json()


def test_every_page_is_in_it(passages: Any) -> None:
    found = {address.partition("#")[0] for _, _, _, address, *_ in passages}
    documented = {entry.path for section in sections() for entry in section.entries}
    assert found == {*documented, "/pricing", "/status"}


@pytest.mark.parametrize(
    ("word", "address"),
    [
        ("closed_only", "/docs/api/getMarket"),
        ("invalid_cursor", "/docs/api/getHistory"),
        ("wscat", "/docs/without-client#streams"),
        ("cumulative_delta", "/docs/streams/orderflow#orderflowtick"),
        ("resume.epoch", "/docs/streams/messages#subscribe"),
        ("X-Last-Closed", "/docs/api/headers"),
        ("slow_consumer", "/docs/streams/errors"),
        ("tickwire-server doctor", "/docs/operate/doctor"),
        ("absorption counts towards the minute", "/docs/computed#flow"),
    ],
)
def test_word_is_found_where_it_is_explained(passages: Any, word: str, address: str) -> None:
    assert address in [row[3] for row in passages if word in row[4] or word in row[5].split()]


def test_passages_are_short_without_samples_and_the_whole_is_small(passages: Any) -> None:
    assert not [text for *_, text, _ in passages if "YOUR_KEY" in text or 'TICKWIRE_KEY"]' in text]
    assert all(len(text) <= LONGEST_HERE for *_, text, _ in passages)
    assert len(Client().get("/docs/search.json").content) < MOST_BYTES


def test_unchanged_index_is_not_sent_again() -> None:
    first = Client().get("/docs/search.json")
    assert first["Cache-Control"] == "public, max-age=300"
    again = Client().get("/docs/search.json", headers={"If-None-Match": first["ETag"]})
    assert (again.status_code, again.content) == (304, b"")
