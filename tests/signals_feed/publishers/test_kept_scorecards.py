"""A scorecard that is kept and added to is the one that a process reads for the first time."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from decimal import Decimal
from threading import Event
from typing import Any
from unittest.mock import Mock

import pytest
from django.test import Client

from config.wiring import BACKGROUND
from core.threads import in_thread
from signals_feed.models import Signal
from signals_feed.publishers.lookup import Scorecards, find, scorecards
from signals_feed.publishers.standings import read_ahead, read_standings, reading_ahead
from signals_feed.publishers.verdicts import Judging, verdicts
from tests.factories import NOON, make_instrument
from tests.patience import PATIENCE_S
from tests.signals_feed import filled_signals
from tests.signals_feed.published_signals import make_filled, make_publisher

pytestmark = [pytest.mark.django_db, pytest.mark.services, pytest.mark.usefixtures("clock", "own_market")]
WON = Decimal("1.0900")


def test_kept_scorecard_is_that_of_all_signals_in_whatever_order_they_became_known() -> None:
    make_instrument()
    kept, anna = Scorecards(), make_publisher("anna")

    def is_whole() -> bool:
        publisher = find("anna")
        assert publisher is not None
        return kept.read(publisher) == Scorecards().read(publisher)

    waits = make_filled(anna, minute=5, fill_price=None, filled_at=None)
    stays = make_filled(anna, minute=10)
    assert is_whole()
    make_filled(anna, minute=20, close_price=WON)
    assert is_whole()
    # Filled and closed before what was known.
    make_filled(anna, minute=12, instrument=make_instrument("XAUUSD"))
    assert is_whole()
    make_filled(anna, minute=2, close_price=Decimal("1.0810"))
    assert is_whole()
    ended: dict[str, Any] = {"status": "closed", "close_reason": "cancelled", "cancel_reason": "no_tick"}
    ended |= {"close_price": waits.entry, "pnl": 0, "pnl_percent": 0, "pnl_r": 0}
    for signal in (waits, stays):
        Signal.objects.filter(pk=signal.pk).update(closed_at=NOON + timedelta(minutes=15), **ended)
        assert is_whole()


@pytest.mark.django_db(transaction=True)
def test_what_an_answer_does_not_judge_gains_nothing_until_the_background_has_judged_it() -> None:
    names = "anna", "bert"
    for name in names:
        filled_signals.reach_target(filled_signals.make_filled(make_publisher(name)))
    kept = Scorecards()

    def found(judging: Judging) -> list[tuple[int, int, list[str]]]:
        publishers = [publisher for name in names if (publisher := find(name)) is not None]
        cards = [kept.read(publisher, judging=judging) for publisher in publishers]
        return [(card.unjudged, card.figures.all.wins, [*card.standings]) for card in cards]

    whole = (0, 1, ["venue"])
    assert found(Judging(at_once=1)) == [whole, (1, 0, [])]
    assert found(Judging()) == [whole, (1, 0, [])]
    assert (verdicts.start, verdicts.stop) in BACKGROUND
    asyncio.run(verdicts.judge_waiting())
    assert found(Judging(at_once=0)) == [whole, whole]


@pytest.mark.django_db(transaction=True)
async def test_records_are_read_and_judged_before_anybody_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    def begin() -> None:
        scorecards.clear()
        filled_signals.reach_target(filled_signals.make_filled(make_publisher("anna")))

    await in_thread(begin)
    monkeypatch.setattr("signals_feed.publishers.verdicts.AT_ONCE", 0)
    monkeypatch.setattr("signals_feed.publishers.standings.AGAIN_S", 0)
    read = Mock(wraps=read_standings)
    monkeypatch.setattr("signals_feed.publishers.standings.read_standings", read)
    assert (reading_ahead.start, reading_ahead.stop) in BACKGROUND
    await verdicts.start()
    await read_ahead()
    await verdicts.stop()
    # Once, and once more when it was judged.
    assert read.call_count == 2
    (anna,) = (await in_thread(read_standings))["venue"]
    assert (anna.card.unjudged, anna.card.figures.all.wins) == (0, 1)


@pytest.mark.parametrize("path", ["/publishers/anna", "/publishers/anna/scorecard.svg"])
def test_visitor_who_waits_for_a_record_that_another_reads_is_told_to_try_again(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("signals_feed.publishers.lookup.WAIT_S", 0.01)
    anna, reading, may_end = make_publisher("anna"), Event(), Event()
    make_instrument()
    make_filled(anna)

    def read_slowly(*_: object) -> None:
        reading.set()
        may_end.wait(PATIENCE_S)

    page = Client(raise_request_exception=False)
    publisher = find("anna")
    assert publisher is not None
    with ThreadPoolExecutor(1) as threads, monkeypatch.context() as patched:
        patched.setattr("signals_feed.publishers.lookup.KeptScorecard.add_to", read_slowly)
        slow = threads.submit(scorecards.read, publisher)
        try:
            assert reading.wait(PATIENCE_S)
            answer = page.get(path)
            assert (slow.done(), answer.status_code, answer["Retry-After"]) == (False, 503, "2")
        finally:
            may_end.set()
    scorecards.clear()
    assert page.get(path).status_code == 200
