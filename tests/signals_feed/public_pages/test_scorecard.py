"""The scorecard as a picture: other sites may show it, keep it for five minutes, and run nothing of it."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from django.test import Client

from accounts.models import User
from signals_feed.public_pages.publisher import COLOURS, draw_scorecard
from signals_feed.publisher_checks import CheckedResults
from signals_feed.publishers.lookup import Publisher, scorecards
from tests.factories import NOON, make_signal, make_user
from tests.signals_feed.published_signals import make_filled, make_lucky

pytestmark = pytest.mark.django_db
SVG = "{http://www.w3.org/2000/svg}"
HOSTILE = [
    "<script>alert(1)</script>",
    '"><svg onload=alert(1)>',
    "]]><b>",
    "&amp;&",
    "a\x0bb",
    "\ufffe",
    "x" * 150,
]


def make_scored(name: str = "anna", closed: int = 2) -> User:
    user = make_user(name)
    for number in range(closed):
        at = NOON + timedelta(minutes=number)
        price = Decimal("1.0810" if number == 0 else "1.0900")
        make_signal(user=user, status="closed", close_price=price, published_at=at, closed_at=at)
    return user


def ask(query: str = "", **headers: str) -> Any:
    return Client().get(f"/publishers/anna/scorecard.svg{query}", headers=headers)


def texts(body: str) -> list[str]:
    return [each.text or "" for each in ET.fromstring(body).iter(f"{SVG}text")]  # noqa: S314 - our own


def test_it_has_the_figures_of_the_scorecard() -> None:
    make_lucky("anna", won=29, lost=1)
    shown = texts(ask().text)
    assert shown[0] == "anna"
    assert shown[2:7] == ["Episodes", "Win rate", "Average", "Total", "Drawdown"]
    assert shown[7:12] == ["30", "96.7%", "+1.72\xa0R", "+51.56\xa0R", "1.00\xa0R"]
    assert "18 Nov 2026" in shown


@pytest.mark.parametrize(
    ("won", "lost", "verdict"),
    [
        (1, 28, "Too few to judge: under 30 episodes have ended"),
        (1, 29, "Not distinguishable from luck"),
        (24, 9, "At least "),
        (29, 1, "Proven: by luck alone fewer than 1 in "),
    ],
)
def test_it_says_what_is_proved(won: int, lost: int, verdict: str) -> None:
    make_lucky("anna", won, lost)
    assert any(text.startswith(verdict) for text in texts(ask().text))


def test_publisher_without_a_fill_has_one_without_figures() -> None:
    make_filled(make_user("anna"), fill_price=None, filled_at=None)
    assert texts(ask().text)[7:12] == ["0", "–", "–", "–", "–"]


def test_other_sites_may_show_it_and_nothing_else_of_ours() -> None:
    make_scored()
    answer = ask()
    assert answer["Content-Type"] == "image/svg+xml; charset=utf-8"
    assert answer["Cross-Origin-Resource-Policy"] == "cross-origin"
    assert "script-src 'self'" in answer["Content-Security-Policy"]
    assert answer["X-Content-Type-Options"] == "nosniff"
    for path in ("/publishers/anna", "/publishers", "/publishers/nobody/scorecard.svg"):
        assert "Cross-Origin-Resource-Policy" not in Client().get(path).headers


def test_it_is_kept_for_five_minutes_and_then_asked_for_by_its_tag() -> None:
    user = make_scored()
    first = ask()
    assert first["Cache-Control"] == "public, max-age=300"
    assert "Vary" not in first.headers
    assert "Set-Cookie" not in first.headers
    again = ask(if_none_match=first["ETag"])
    assert (again.status_code, again.content, again["ETag"]) == (304, b"", first["ETag"])
    assert again["Cross-Origin-Resource-Policy"] == "cross-origin"
    make_signal(user=user, status="closed", published_at=NOON, closed_at=NOON + timedelta(hours=1))
    changed = ask(if_none_match=first["ETag"])
    assert (changed.status_code, changed["ETag"] != first["ETag"]) == (200, True)


@pytest.mark.parametrize("name", HOSTILE)
def test_name_is_text_and_nothing_else(name: str) -> None:
    user = make_scored(name)
    publisher = Publisher(user.pk, name, is_demo=False, active=0, waiting=0, closed=2, last_at=NOON)
    drawn = draw_scorecard(publisher, scorecards.read(publisher), CheckedResults(), COLOURS["light"])
    root = ET.fromstring(drawn)  # noqa: S314 - our own
    tags = {each.tag.removeprefix(SVG) for each in root.iter()}
    assert tags <= {"svg", "title", "desc", "rect", "line", "polyline", "path", "text", "g"}
    assert not any(key.startswith("on") for each in root.iter() for key in each.attrib)
    assert len(next(root.iter(f"{SVG}text")).text or "") <= 33


def test_dark_pages_ask_for_the_dark_one() -> None:
    make_scored()
    assert COLOURS["dark"]["surface"] in ask("?theme=dark").text
    assert ask("?theme=dark")["ETag"] != ask()["ETag"]
    assert ask("?theme=<b>").text == ask().text


LONG = "Walker_Three_With_Long_Name_30"


@pytest.mark.parametrize(
    ("name", "drawn"),
    [
        ("anna", '18" font-weight="700" fill="#16202a">anna'),
        ("i" * 30, '18" font-weight="700" fill="#16202a">' + "i" * 30),
        (LONG, '14" font-weight="700" fill="#16202a">' + LONG),
        ("W" * 30, '14" font-weight="700" fill="#16202a">' + "W" * 20 + "…"),
    ],
)
def test_long_name_is_smaller_and_cut_where_its_room_ends(name: str, drawn: str) -> None:
    make_signal(user=make_user(name))
    assert f'font-size="{drawn}</text>' in Client().get(f"/publishers/{name}/scorecard.svg").text
