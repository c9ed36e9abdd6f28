"""What another site shows of a link to one of our pages."""

from __future__ import annotations

import re
from html import unescape

import pytest
from django.test import Client

from tests.factories import make_signal, make_user

pytestmark = pytest.mark.django_db


def preview(path: str) -> dict[str, str]:
    shown = Client().get(path, headers={"accept": "text/html"}).text
    return {
        name: unescape(text) for name, text in re.findall(r'property="og:(\w+)" content="([^"]*)"', shown)
    }


def test_publisher_and_signal_have_previews_of_their_own() -> None:
    signal = make_signal(user=make_user("anna"))
    for path, title, about in (
        ("/publishers/anna", "anna, publisher", "The results of anna: every closed signal counts"),
        (f"/signals/{signal.pk}", "Buy EURUSD by anna", "A trade signal with the ticks"),
    ):
        found = preview(f"{path}?page=1")
        assert (found["title"], found["url"]) == (title, f"http://testserver{path}")
        assert found["description"].startswith(about)
    # The page of a failure has none.
    assert preview("/publishers/nobody") == {}


@pytest.mark.parametrize("path", ["/about", "/pricing", "/publishers", "/docs", "/status", "/ledger"])
def test_every_public_page_says_what_its_head_says(path: str) -> None:
    shown = unescape(Client().get(path, headers={"accept": "text/html"}).text)
    title, about = (
        re.search(pattern, shown, re.DOTALL)
        for pattern in (r"<title>(.+?) · Tickwire</title>", r'name="description" content="([^"]+)"')
    )
    assert title
    assert about
    found = preview(path)
    assert (found["title"], found["description"]) == (title[1], about[1])
    assert found["url"] == f"http://testserver{path}"


def test_name_is_text_in_the_preview() -> None:
    make_signal(user=make_user('<b>"x&y'))
    path = "/publishers/%3Cb%3E%22x&y"
    assert preview(path)["title"] == '<b>"x&y, publisher'
    assert preview(path)["url"] == "http://testserver/publishers/%3Cb%3E%22x&y"
    assert "<b>" not in Client().get(path).text
