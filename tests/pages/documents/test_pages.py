"""/docs: every page answers, leads on, and says nothing of itself that is not so."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

from accounts.models import Tier
from market.engine.bus.journal import KEEP_MS
from pages.documents.own_pages import read_changelog
from tests.factories import make_instrument, put_quote

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize("path", ["/", "/status", "/llms.txt"])
def test_every_link_of_a_page_beside_them_leads_somewhere(path: str) -> None:
    text = Client().get(path).text
    links = set(re.findall(r'href="(/[^"#]*)', text)) | set(
        re.findall(r"\(http://testserver(/[^)#]*)\)", text)
    )
    lost = {
        link for link in links if not link.startswith("/static/") and Client().get(link).status_code >= 400
    }
    assert links
    assert lost == set()


def said(path: str) -> str:
    """The text of a page, without its marks."""
    return unescape(re.sub(r"<[^>]+>", "", Client().get(path).text))


@pytest.mark.parametrize("path", ["/docs", "/docs/clients", "/docs/without-client", "/docs/api/getQuote"])
def test_samples_come_in_the_same_three_languages(path: str) -> None:
    page = Client().get(path).text
    groups = re.findall(
        r'<div class="samples".*?</div>\s*</div>|<div class="samples".*?</figure>\s*</div>', page, re.DOTALL
    )
    assert groups
    for group in groups:
        assert re.findall(r'<figure[^>]* data-language="(\w+)"', group) == ["shell", "python", "javascript"]


def test_quick_start_names_this_host_and_the_open_symbol() -> None:
    assert re.search(r"http://testserver/api/market/\w+/quote", said("/docs"))
    assert 'connect("ws://testserver/ws/market")' in said("/docs/without-client")
    make_instrument("XAUUSD")
    put_quote("XAUUSD", 2400.1, 2400.4)
    assert "/api/market/XAUUSD/quote" in said("/docs")


def test_limits_are_those_of_the_tiers_and_readable() -> None:
    Tier.objects.filter(name="free").update(requests_per_minute=1000)
    shown = re.findall(r"<td>([\d,]+)</td>", Client().get("/docs").text)
    assert shown == ["1,000", "2", "5", *("120", "5", "20"), *("300", "10", "50")]


def test_changelog_shows_every_item_of_the_file() -> None:
    with open("CHANGELOG.md") as file:
        items = sum(line.startswith("- ") for line in file)
    article = Client().get("/docs/changelog").text.partition("<article")[2].partition("</article>")[0]
    assert article.count("<li>") == items


def test_changelog_marks_code_and_escapes_the_rest() -> None:
    read = read_changelog(
        "# Changes\n\nAll of\nthem.\n\n## 1.0 (today)\n\n- `GET <x>` is *new*,\n  and long\n- b\n"
    )
    assert read.about == "All of them."
    assert read.releases == [("1.0 (today)", ["<code>GET &lt;x&gt;</code> is <em>new</em>, and long", "b"])]


def test_language_models_get_text() -> None:
    answer = Client().get("/llms.txt")
    assert answer["Content-Type"] == "text/plain; charset=utf-8"
    assert answer.text.startswith("# Tickwire\n")
    names = ("market", "orderflow", "candles", "signals", "news")
    streams = ", ".join(f"ws://testserver/ws/{name}" for name in names)
    assert f"\n- Streams: {streams}; all of them together: ws://testserver/ws\n" in answer.text
    assert " five WebSocket streams" in answer.text


@pytest.mark.parametrize("path", ["/docs", "/docs/clients", "/pricing"])
def test_clients_promise_to_recover_no_more_than_is_kept(path: str) -> None:
    page = " ".join(re.sub("<[^>]+>", "", Client().get(path).text).split())
    assert re.findall(r"[^.]*(\d{3}) seconds[^.]* could not be recovered", page) == [str(KEEP_MS // 1000)]
    assert not re.search("without (a gap|losing)", page)
