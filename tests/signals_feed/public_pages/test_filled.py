"""Signals by rules 2 on pages: they wait for their fill, then show it beside the entry, or are set apart."""

from __future__ import annotations

import json
import re
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.test import Client

from signals_feed.api.publishers import read_scorecard
from signals_feed.models import Signal
from signals_feed.publishers.lookup import find, scorecards
from signals_feed.publishers.verdicts import Judging
from tests.factories import make_user, put_quote
from tests.signals_feed.filled_signals import make_filled, make_unfilled, make_waiting, reach_target
from tests.signals_feed.ledger.by_hand import add_now

pytestmark = pytest.mark.django_db
OF_A_RESULT = ('class="mark', "0.00\xa0R", "does not hold", "result holds", "Evidence at exit", "and exit")


def page(path: str) -> str:
    answer = Client().get(path, headers={"accept": "text/html"})
    assert answer.status_code == 200
    return unescape(answer.text)


def fills(signal: Signal) -> dict[str, float | None]:
    answer = Client().get("/signals/filled", {"ids": str(signal.pk)})
    assert answer["Cache-Control"] == "no-store"
    found: dict[str, float | None] = answer.json()["fills"]
    return found


def marks(signal: Signal) -> dict[str, list[str]]:
    """They change, as long as it is open."""
    answer = Client().get("/signals/checked", {"ids": str(signal.pk)})
    assert answer["Cache-Control"] == "no-store"
    found: dict[str, list[str]] = answer.json()["marks"]
    return found


def row_of(signal: Signal) -> str:
    rows: list[str] = re.findall(r'<tr role="row">.*?</tr>', page(f"/publishers/{signal.user}"), re.DOTALL)
    return next(row for row in rows if str(signal.pk) in row)


@pytest.mark.usefixtures("own_market")
def test_signal_waits_for_its_fill_and_makes_nothing_until_then() -> None:
    put_quote("EURUSD", 1.0826, 1.0827)
    signal = make_waiting()
    shown = page(f"/signals/{signal.pk}")
    assert "Waiting for its fill" in shown
    assert '<p class="sum' not in shown
    assert "waiting for its fill" in row_of(signal)
    assert fills(signal) == {str(signal.pk): None}
    assert marks(signal) == {}


@pytest.mark.usefixtures("own_market")
def test_fill_stands_beside_the_entry_and_the_result_runs_from_the_worse() -> None:
    put_quote("EURUSD", 1.0827, 1.0828)
    signal = make_filled()
    shown = page(f"/signals/{signal.pk}")
    assert "<dt>Fill</dt><dd>1.08440</dd>" in shown
    assert "max(1.08420, 1.08440)" in shown
    assert '<p class="sum loss">\N{MINUS SIGN}0.50\xa0R</p>' in shown
    assert "filled 1.08440" in row_of(signal)
    assert fills(reach_target(signal)) == {str(signal.pk): 1.0844}


def test_result_at_a_venue_is_marked_so_everywhere() -> None:
    signal = reach_target(make_filled(make_user("anna")))
    for path in (f"/signals/{signal.pk}", "/publishers/anna"):
        assert "Verified at a venue" in page(path)
    assert "1 verified at a venue" in Client().get("/publishers/anna/scorecard.svg").text


@pytest.mark.usefixtures("own_market")
@pytest.mark.parametrize(
    ("forged", "label"), [({}, "Verified at a venue"), ({"price": Decimal("1.0842")}, "Not verified")]
)
def test_fill_is_marked_everywhere_while_the_signal_is_open(forged: dict[str, Any], label: str) -> None:
    put_quote("EURUSD", 1.0827, 1.0828)
    signal = make_filled(make_user("anna"), **forged)
    assert [found[1] for found in marks(signal).values()] == [label]
    assert label in row_of(signal)
    outcome = page(f"/signals/{signal.pk}").split('id="outcome"')[1].split('id="proof"')[0]
    assert label in outcome
    assert Client().get("/publishers/anna/marks").json()["marks"][0][1:] == [label, 1]


def test_unfilled_signal_has_no_result_and_no_mark() -> None:
    signal = make_unfilled()
    shown = page(f"/signals/{signal.pk}")
    assert ">Unfilled</span>" in shown
    assert not [word for word in OF_A_RESULT if word in shown]
    row = row_of(signal)
    assert ("unfilled" in row, "0.00" in row) == (True, False)
    asked = Client().get("/signals/checked", {"ids": str(signal.pk)}).json()
    assert asked["marks"] == {str(signal.pk): ["", "Unfilled"]}
    found = Client().get("/signals/filled", {"ids": str(signal.pk)}).json()
    assert found == {"fills": {}, "unfilled": [str(signal.pk)]}


def test_what_is_asked_to_close_says_so() -> None:
    signal = make_filled()
    add_now("close_request", signal.pk)
    assert "Its publisher asked to close it." in page(f"/signals/{signal.pk}")
    assert "asked to close" in row_of(signal)


WITH_FIGURES = "/publishers/anna", "/publishers", "/publishers/anna/scorecard.svg"


def of_rest() -> dict[str, Any]:
    answer: dict[str, Any] = json.loads(read_scorecard("anna") or "{}")
    return answer


def test_gain_that_does_not_count_is_named_wherever_figures_stand() -> None:
    reach_target(make_filled(make_user("anna")), bid=Decimal("1.0800"))
    said = "1 signal whose record", "1 not counted", "1 gain not counted"
    assert all(words in Client().get(path).text for path, words in zip(WITH_FIGURES, said, strict=True))
    assert (of_rest()["contradicted"], of_rest()["total_r"]) == (1, 0)


def test_signal_that_is_not_judged_yet_is_named_wherever_figures_stand() -> None:
    reach_target(make_filled(make_user("anna")))
    anna = find("anna")
    assert anna is not None
    scorecards.read(anna, judging=Judging(at_once=0))
    said = "has not judged 1 of these signals", "has not judged 1 signal yet", "Not ranked yet"
    assert all(words in Client().get(path).text for path, words in zip(WITH_FIGURES, said, strict=True))
    assert Client().get(WITH_FIGURES[-1])["Cache-Control"] == "public, max-age=0"
    assert (of_rest()["unjudged"], of_rest()["ranks"]) == (1, [])
