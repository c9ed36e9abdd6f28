"""What lists ask before they mark a result as verified."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client

from signals_feed.ledger.guards import put_up_triggers, take_down_triggers
from signals_feed.models import Evidence, Signal
from signals_feed.public_pages.checked import MOST_ASKED
from tests.databases.queries import count_queries
from tests.factories import make_signal, make_user
from tests.signals_feed.published_signals import close_at, make_published

pytestmark = pytest.mark.django_db


@pytest.fixture
def closed() -> list[Signal]:
    anna = make_user("anna")
    made = [make_published(user=anna) for _ in range(3)]
    for signal in made:
        close_at(signal, Decimal("1.0874"), Decimal("1.0875"))
    return made


def states(*ids: object) -> dict[str, str]:
    answer = Client().get("/signals/checked", {"ids": ",".join(map(str, ids))})
    assert (answer.status_code, answer["Cache-Control"]) == (200, "private, max-age=300")
    found: dict[str, str] = answer.json()["states"]
    return found


def of_publisher() -> dict[str, int]:
    found: dict[str, int] = Client().get("/publishers/anna/checked").json()
    return found


def tamper(signal: Signal, **changes: Any) -> None:
    take_down_triggers()
    Evidence.objects.filter(signal=signal, kind="exit").update(**changes)
    put_up_triggers()


def test_result_that_holds_is_verified(closed: list[Signal]) -> None:
    ids = [signal.pk for signal in closed]
    assert states(*ids) == {str(pk): "verified" for pk in ids}
    assert of_publisher() == {"checked": 3, "verified": 3}


@pytest.mark.parametrize("path", ["/publishers/anna", "/signals/{pk}"])
def test_tampered_evidence_is_not_verified_and_pages_say_so(closed: list[Signal], path: str) -> None:
    tamper(closed[1], bid=Decimal("1.0900"), ask=Decimal("1.0901"))
    expected = ("verified", "altered", "verified")
    assert states(*(signal.pk for signal in closed)) == {
        str(signal.pk): state for signal, state in zip(closed, expected, strict=True)
    }
    assert of_publisher() == {"checked": 3, "verified": 2}
    shown = Client().get(path.format(pk=closed[1].pk)).text
    (mark,) = re.findall(r'<a class="mark altered".*?</a>', shown, re.DOTALL)
    assert "Not verified" in mark


def test_signal_without_evidence_is_not_verified() -> None:
    signal = make_signal(user=make_user("anna"), status="closed")
    assert "verified" not in states(signal.pk).values()
    assert of_publisher()["verified"] == 0


def test_active_and_unknown_signals_and_nonsense_are_left_out(closed: list[Signal]) -> None:
    assert states(make_published().pk, uuid4(), "x", "", "\0") == {}


def test_no_more_are_checked_than_a_list_shows(closed: list[Signal]) -> None:
    others = [uuid4() for _ in range(MOST_ASKED - 1)]
    assert len(states(*others, *(signal.pk for signal in closed))) == 1


def test_publisher_is_not_checked_again_at_once_but_after_the_next_close(closed: list[Signal]) -> None:
    of_publisher()
    with count_queries() as asked:
        of_publisher()
    assert len(asked) == 1, asked
    close_at(make_published(user=closed[0].user), Decimal("1.0874"), Decimal("1.0875"))
    assert of_publisher() == {"checked": 4, "verified": 4}
