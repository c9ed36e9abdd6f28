"""What all public pages of signals have in common."""

from __future__ import annotations

from decimal import Decimal

import pytest
from django.test import Client

from signals_feed.models import Signal
from signals_feed.publishing.actions import cancel
from tests.accounts.panel.test_look import assert_is_ours
from tests.databases.queries import count_queries
from tests.factories import make_user
from tests.signals_feed.published_signals import close_at, make_published

pytestmark = [pytest.mark.django_db, pytest.mark.services]
BROWSER = {"accept": "text/html"}


def make_closed(name: str) -> Signal:
    signal = make_published(user=make_user(name))
    close_at(signal, Decimal("1.0874"), Decimal("1.0875"))
    return signal


@pytest.mark.parametrize("path", ["/publishers", "/publishers/anna", "/ledger", "/signals/{signal}"])
def test_page_is_public_and_ours(path: str) -> None:
    signal = make_closed("anna")
    answer = Client().get(path.format(signal=signal.pk), headers=BROWSER)
    assert answer.status_code == 200
    assert_is_ours(answer.text)


@pytest.mark.parametrize(
    ("path", "words"),
    [("/publishers", "Nobody has published a signal yet"), ("/ledger", "The ledger is empty until")],
)
def test_page_is_there_before_the_first_signal(path: str, words: str) -> None:
    assert words in Client().get(path, headers=BROWSER).text


@pytest.mark.parametrize(
    "path",
    [
        *("/publishers/silent", "/publishers/nobody", "/publishers/a%00b", "/publishers/nobody/checked"),
        *("/publishers/silent/scorecard.svg", "/signals/nothing", "/signals/1"),
        "/signals/080b19cc-d74e-40f7-b52a-5ff98b5a6a6b",
        "/signals/6F1C2F5E-8F0B-4A53-9D0E-2B8F6F6F9A01",
    ],
)
def test_what_was_never_published_has_no_page(path: str) -> None:
    make_user("silent")
    assert Client().get(path, headers=BROWSER).status_code == 404


@pytest.mark.parametrize("path", ["/publishers", "/publishers/%3Cb%3Ex&y", "/signals/{signal}"])
def test_texts_are_texts_and_nothing_else(path: str) -> None:
    signal = make_published(user=make_user("<b>x&y"))
    cancel(signal, reason="<i>no</i>", by="boss")
    shown = Client().get(path.format(signal=signal.pk)).text
    assert "<b>x" not in shown
    assert "&lt;b&gt;x&amp;y" in shown
    assert "<i>no" not in shown
    assert ("&lt;i&gt;no" in shown) is (path != "/publishers")


@pytest.mark.parametrize(
    ("path", "queries"), [("/publishers", 2), ("/publishers/anna", 7), ("/signals/{signal}", 7)]
)
def test_page_costs_as_many_queries_for_many_publishers_as_for_one(path: str, queries: int) -> None:
    signal = make_closed("anna")
    for name in ("bert", "cora"):
        Client().get(path.format(signal=signal.pk))
        with count_queries() as asked:
            Client().get(path.format(signal=signal.pk))
        assert len(asked) == queries, asked
        make_closed(name)
        close_at(make_published(user=signal.user), Decimal("1.0874"), Decimal("1.0875"))
