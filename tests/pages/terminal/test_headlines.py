"""The terminal's page brings the newest headlines along: they are read before a script has asked for news."""

from __future__ import annotations

import re

import pytest
from django.test import Client
from pytest_django.fixtures import Settings

from tests.factories import make_instrument, make_news

pytestmark = pytest.mark.django_db
STORY = re.compile(r'<li class="story waiting">\s*<p class="title">(.*?)</p>', re.DOTALL)


@pytest.fixture(autouse=True)
def _public(settings: Settings) -> None:
    settings.DEMO = settings.PUBLIC_TERMINAL = True
    make_instrument("EURUSD")


def test_headlines_of_published_news_are_in_the_page(client: Client) -> None:
    make_news("Gold <steadies>", url="https://example.com/gold")
    make_news("Dollar slips")
    make_news("Not yet", status="draft")
    make_news("Odd address", url="javascript:alert(1)")
    page = client.get("/terminal").content.decode()
    assert STORY.findall(page) == [
        "Odd address",
        "Dollar slips",
        '<a href="https://example.com/gold" rel="noopener" target="_blank">Gold &lt;steadies&gt;</a>',
    ]


def test_without_news_something_is_seen_to_be_on_its_way(client: Client) -> None:
    page = client.get("/terminal").content.decode()
    assert not STORY.findall(page)
    assert '<li class="waiting">' in page.partition('id="news"')[2]
