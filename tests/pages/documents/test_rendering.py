"""Markdown as it is shown: headings that can be linked to, links of the site, code in colour."""

from __future__ import annotations

from pages.documents.highlighting import highlighted
from pages.documents.rendering import anchor_of, render_markdown


def shown(text: str) -> str:
    return render_markdown(text, lambda link: None if link.startswith("..") else f"/docs/{link}").html


def test_headings_have_the_anchors_of_github_and_each_its_own() -> None:
    assert anchor_of("When a minute is closed: a `tick`, later?") == "when-a-minute-is-closed-a-tick-later"
    read = render_markdown("# T\n\n## Same\n\n## Same\n", str)
    assert [heading.anchor for heading in read.headings] == ["same", "same-1"]


def test_raw_html_is_text() -> None:
    assert "<script>" not in shown("a <script>alert(1)</script>\n\n<style>b</style>\n")


def test_comment_on_a_line_of_its_own_is_not_shown() -> None:
    html = shown("<!-- begin -->\nWords.\n\n- item\n<!-- end -->\n")
    assert html.split() == ["<p>Words.</p>", "<ul>", "<li>item</li>", "</ul>"]


def test_link_that_leads_nowhere_on_the_site_is_text() -> None:
    html = shown("See [the *code*](../deploy/x) and [this](feeds).")
    assert html == '<p>See the <em>code</em> and <a href="/docs/feeds">this</a>.</p>\n'


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


def test_aligned_cells_need_no_style() -> None:
    html = render_markdown("| a | b |\n|---|--:|\n| 1 | 2 |\n", str).html
    assert "style" not in html
    assert html.count('class="num right"') == 2
