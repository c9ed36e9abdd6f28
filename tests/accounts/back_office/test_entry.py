"""Who is let in, and what the pages behind may load."""

from __future__ import annotations

import re

import pytest
from django.test import Client

from news.models import NewsItem
from tests.factories import make_user

from .office import Office, text_of

pytestmark = pytest.mark.django_db


def policy(client: Client, path: str) -> str:
    return client.get(path).headers["Content-Security-Policy"]


def test_the_login_is_allauths_and_leads_back_and_a_password_posted_here_opens_nothing() -> None:
    answer = Client().get("/admin/news/newsitem/", follow=True)
    assert [path for path, _ in answer.redirect_chain] == [
        "/admin/login/?next=/admin/news/newsitem/",
        "/accounts/login/?next=%2Fadmin%2Fnews%2Fnewsitem%2F",
    ]
    make_user("boss", "boss-pass-1", is_staff=True)
    client = Client()
    answer = client.post("/admin/login/", {"username": "boss", "password": "boss-pass-1"})
    assert (answer.status_code, "_auth_user_id" in client.session) == (302, False)


ADD_NEWS = "/admin/news/newsitem/add/"
TYPED = {"title": "Gold <steadies>", "summary": "One.\nTwo.", "published_at_0": "2026-11-20", "_save": "Save"}


def test_a_form_sent_after_the_session_has_ended_is_given_back(office: Office) -> None:
    office.client.logout()
    answer = office.client.post(
        ADD_NEWS, {**TYPED, "url": " ", "password1": "hunter-22", "notes-__prefix__-at": "x"}
    )
    page = text_of(answer)
    assert answer.status_code == 403
    assert "nothing was saved" in page
    assert "<dt>Title</dt><dd>Gold &lt;steadies&gt;</dd>" in page
    assert "<dt>Summary</dt><dd>One.\nTwo.</dd>" in page
    assert "<dt>Published at</dt><dd>2026-11-20</dd>" in page
    assert page.count("<dt>") == 3
    assert 'href="/admin/login/?next=%2Fadmin%2Fnews%2Fnewsitem%2Fadd%2F" target="_blank"' in page
    assert "hunter-22" not in page
    assert not NewsItem.objects.exists()


@pytest.mark.parametrize(
    ("path", "sent", "headers"),
    [
        ("/admin/news/queue/", {"act": "publish", "item": "1:a"}, {}),
        ("/admin/news/queue/", {"act": "score", "score": "0.4"}, {"Sec-Fetch-Mode": "cors"}),
        ("/admin/logout/", {}, {}),
    ],
)
def test_a_press_of_a_button_after_that_leads_to_the_login(
    path: str, sent: dict[str, str], headers: dict[str, str]
) -> None:
    assert Client().post(path, sent, headers=headers).status_code == 302


def test_the_admin_may_evaluate_but_not_inline_and_no_other_page_shares_its_policy() -> None:
    office = Office(make_user(is_staff=True))
    directives = policy(office.client, "/admin/").split("; ")
    assert {"script-src 'self' 'unsafe-eval'", "style-src 'self'"} < {*directives}
    assert "style-src-attr 'unsafe-inline'" in directives
    assert "unsafe" not in policy(office.client, "/accounts/logout/")
    assert "unsafe" not in policy(office.client, "/admin/nothing/of/the/kind")


@pytest.mark.parametrize(
    "path", ["/admin/", "/admin/market/status/", "/admin/news/newsitem/", "/admin/news/newsitem/add/"]
)
def test_nothing_is_inline_or_from_another_host(office: Office, path: str) -> None:
    page = text_of(office.get(path))
    sources = re.findall(r'<(?:script|link|img)[^>]*(?:src|href)="([^"]*)"', page)
    assert sources
    assert all(source.startswith("/") and not source.startswith("//") for source in sources)
    assert "<style" not in page
    assert not re.search(r"<script(?![^>]*src=)(?![^>]*type=\"application/json\")", page)
