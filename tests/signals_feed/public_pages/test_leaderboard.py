"""The page of all publishers: who stands on it, in which order, and with which figures."""

from __future__ import annotations

import re
from datetime import timedelta
from decimal import Decimal
from html import unescape
from typing import Any

import pytest
from django.test import Client
from time_machine import Traveller

from accounts.deletion import delete_account
from accounts.models import User
from demo.publisher_rules import STATEMENTS
from signals_feed.api.publishers import record_of
from signals_feed.figures import tone
from signals_feed.models import RulesBegun, Signal
from signals_feed.publisher_checks import checked_results
from signals_feed.publishers.lookup import PER_PAGE, find, read_page, scorecards
from signals_feed.publishers.record import ENOUGH
from signals_feed.publishers.standings import ORDERS, Standings, kept_standings
from tests.factories import NOON, make_account, make_signal, make_user, put_quote
from tests.signals_feed.published_signals import (
    close_at,
    make_filled,
    make_lucky,
    make_published,
    make_publisher,
)

pytestmark = [pytest.mark.django_db, pytest.mark.services]
TODAY = NOON + timedelta(days=10)
PROVEN_BY, TOLD_BY = 26, 12
"""So many wins in a row are enough."""


@pytest.fixture(autouse=True)
def _today(clock: Traveller) -> None:
    clock.move_to(TODAY)


def page(query: str = "") -> str:
    """As it is now, and not seconds ago."""
    kept_standings.clear()
    return unescape(Client().get(f"/publishers{query}").text)


def names(shown: str) -> list[str]:
    return re.findall(r'data-publisher="([^"]+)"', shown)


def row_of(shown: str, name: str) -> str:
    found = re.search(rf'<tr role="row" data-publisher="{name}">(.*?)</tr>', shown, re.DOTALL)
    assert found, name
    return found[1]


def cells(row: str) -> dict[str, str]:
    return dict(re.findall(r'data-label="([^"]+)">(?:<time[^>]*>)?([^<]*)<', row))


def test_figures_are_those_of_the_scorecard() -> None:
    make_publisher("silent")
    make_lucky("anna", won=TOLD_BY, lost=1)
    publisher = find("anna")
    assert publisher is not None
    record = record_of(publisher, scorecards.read(publisher), checked_results.of(publisher))
    assert names(page()) == ["anna"]
    row = row_of(page(), "anna")
    assert 'data-checked="/publishers/anna/marks"' in row
    assert record.expectancy_r is not None
    assert record.win_rate is not None
    shown = cells(row)
    assert shown == {
        "At least": f"+{record.ranks[0].at_least_r:.2f}\xa0R",
        "By luck": f"1 in {int(record.ranks[0].evidence)}",
        "Episodes": str(record.episodes),
        "Win rate": f"{100 * record.win_rate:.1f}%",
        "Average": f"+{record.expectancy_r:.2f}\xa0R",
        "Total": f"+{record.total_r:.2f}\xa0R",
        "Drawdown": f"{record.max_drawdown_r:.2f}\xa0R",
        "Proof": shown["Proof"],
        "Since": "18 Nov 2026",
    }


def groups(shown: str) -> dict[str, list[str]]:
    """The names by their list, and what of it they stand under."""
    parts = re.split(r'id="((?:venue|push|demonstration)(?:-luck|-unranked)?)"', shown)[1:]
    found = {name: names(part) for name, part in zip(parts[::2], parts[1::2], strict=True)}
    return {name: those for name, those in found.items() if those}


def make_groups() -> None:
    make_lucky("sure", won=PROVEN_BY)
    make_lucky("told", won=TOLD_BY)
    make_lucky("lucky", won=3)
    make_lucky("loser", lost=ENOUGH)
    make_lucky("quiet", won=PROVEN_BY, minute=-81 * 24 * 60)
    make_lucky("old", won=PROVEN_BY, rules=1, fill_price=None)
    make_lucky("young", won=PROVEN_BY, rank_unit=None)
    make_lucky("trial", won=1, rank_unit=None, feed="demo")
    make_lucky("made_up", won=TOLD_BY, is_demo=True)
    make_account(make_lucky("seeded", won=1, rules=1, fill_price=None), is_demo=True)
    make_lucky("pusher", won=TOLD_BY, feed="push:desk")
    make_lucky("moved", won=2, feed="kraken:moved")
    make_lucky("unheard_of", won=2, feed="krakem")
    make_lucky("replayed", won=1, feed="replay")
    both = make_lucky("both", won=TOLD_BY)
    make_filled(both, feed="demo", close_price=Decimal("1.0900"))


IN_GROUPS = {
    "venue": ["sure", "both", "told"],
    "venue-luck": ["lucky", "loser"],
    "venue-unranked": ["quiet", "old", "young"],
    "push": ["pusher"],
    "push-luck": ["moved", "unheard_of"],
    "demonstration": ["made_up"],
    "demonstration-luck": ["both", "replayed"],
    "demonstration-unranked": ["seeded", "trial"],
}


@pytest.mark.served
def test_lists_are_apart_and_nobody_is_ranked_by_luck() -> None:
    make_groups()
    shown = page()
    assert groups(shown) == IN_GROUPS
    badges = {name: "proven</span>" in row_of(shown, name) for name in ("sure", "told", "quiet")}
    assert badges == {"sure": True, "told": False, "quiet": True}
    places = {name: re.findall(r'class="place number">(.)<', row_of(shown, name)) for name in names(shown)}
    assert [places[name] for name in ("sure", "both", "told", "pusher")] == [["1"], ["2"], ["3"], ["1"]]
    assert {places[name][0] for name in ("lucky", "loser", "quiet", "old", "replayed")} == {"–"}


@pytest.mark.served
def test_groups_stay_in_every_order() -> None:
    make_groups()
    for query in (f"?sort={sign}{name}" for name in ORDERS for sign in ("", "-")):
        found = groups(page(query))
        assert {name: set(those) for name, those in found.items()} == {
            name: set(those) for name, those in IN_GROUPS.items()
        }, query


def test_record_is_ranked_until_90_days_after_the_last_publication(clock: Traveller) -> None:
    make_lucky("anna", won=TOLD_BY)
    last = NOON + timedelta(minutes=TOLD_BY - 1)
    clock.move_to(last + timedelta(days=90))
    assert groups(page()) == {"venue": ["anna"]}
    clock.move_to(last + timedelta(days=90, milliseconds=1))
    assert groups(page()) == {"venue-unranked": ["anna"]}
    assert "Nothing was published here within 90 days" in Client().get("/publishers/anna").text


ORDERED = {
    "name": ["anna", "bert", "cora"],
    "at_least_r": ["bert", "anna", "cora"],
    "episodes": ["cora", "bert", "anna"],
    "win_rate": ["anna", "bert", "cora"],
    "average_r": ["anna", "bert", "cora"],
    "total_r": ["bert", "cora", "anna"],
    "drawdown": ["anna", "bert", "cora"],
    "since": ["bert", "cora", "anna"],
}


def test_every_column_sorts_best_first_and_turns_round() -> None:
    make_lucky("anna", won=TOLD_BY, minute=2)
    make_lucky("bert", won=PROVEN_BY, lost=5)
    # More evidence than anna's, but less in each signal.
    make_lucky("cora", won=PROVEN_BY, lost=12, minute=1)
    assert {name: names(page(f"?sort={name}")) for name in ORDERS} == ORDERED
    assert names(page("?sort=-episodes")) == ["anna", "bert", "cora"]
    assert names(page("?sort=nonsense")) == names(page()) == ORDERED["at_least_r"]
    # The place is that of the rank in every order.
    for query in ("", "?sort=-at_least_r", "?sort=name", "?sort=-episodes"):
        rows = (row_of(page(query), name) for name in ORDERED["at_least_r"])
        assert [re.findall(r'class="place number">(.)<', row) for row in rows] == [["1"], ["2"], ["3"]]


def test_publisher_without_an_episode_comes_last_either_way() -> None:
    make_lucky("loser", lost=2)
    make_filled(make_user("newcomer"), fill_price=None, filled_at=None)
    make_lucky("winner", won=1)
    for name in ("win_rate", "average_r", "total_r", "drawdown"):
        for sign in ("", "-"):
            assert names(page(f"?sort={sign}{name}"))[2:] == ["newcomer"]


def test_signal_that_waits_for_its_fill_or_never_had_one_is_in_no_figure() -> None:
    anna = make_publisher("anna")
    make_filled(anna, fill_price=None, filled_at=None)
    ended: dict[str, Any] = {"close_reason": "cancelled", "cancel_reason": "no_tick"}
    make_filled(anna, fill_price=None, filled_at=None, close_price=Decimal("1.0842"), **ended)
    row = row_of(page(), "anna")
    assert ("1 active" in row, cells(row)["Episodes"]) == (True, "0")
    assert [cells(row)[name] for name in ("Win rate", "Average", "Total", "Drawdown")] == ["–"] * 4
    shown = Client().get("/publishers/anna").text
    assert "No signal of anna has been filled yet" in shown
    assert "0 closed signals, 1 active" in shown
    assert "1 more ended without a fill" in shown


def test_who_may_not_publish_any_more_stays_and_is_said_to_have_stopped() -> None:
    anna, bert, _ = (make_lucky(name, won=1) for name in ("anna", "bert", "cora"))
    anna.user_permissions.clear()
    bert.is_active = False
    bert.save()
    shown = page()
    stopped = ["no longer publishes" in row_of(shown, name) for name in ("anna", "bert", "cora")]
    assert stopped == [True, True, False]


def test_deleted_account_stays_under_its_pseudonym() -> None:
    pseudonym = delete_account(make_lucky("anna", lost=2))
    assert names(page()) == [pseudonym]
    assert cells(row_of(page(), pseudonym))["Episodes"] == "2"


# The public page of a publisher.
PRICES = ("1.0900", "1.0810", "1.0874")
BROWSER = {"accept": "text/html"}


@pytest.fixture
def anna() -> User:
    user = make_user("anna")
    for number, price in enumerate(PRICES):
        make_filled(user, minute=60 * number, close_price=Decimal(price))
    make_filled(user, minute=240)
    put_quote(bid=1.0826, ask=1.0827)
    return user


def page_of(user: User) -> str:
    return unescape(Client().get(f"/publishers/{user}").text)


def figure(shown: str, name: str) -> str:
    found = re.search(rf"<dt>{name}</dt><dd[^>]*>(.*?)</dd>", shown)
    assert found, name
    return found[1]


def test_page_has_the_numbers_of_the_scorecard_and_the_latest_signals(anna: User) -> None:
    shown = page_of(anna)
    # Open ones are in it, at their present price.
    assert figure(shown, "Episodes") == "4"
    assert figure(shown, "Win rate") == "50.0%"
    assert figure(shown, "Average result") == "+0.33\xa0R"
    assert figure(shown, "By luck alone") == "–"
    assert "not distinguishable from luck" in figure(shown, "Verdict")
    assert figure(shown, "Deepest drawdown") == "1.00\xa0R"
    assert figure(shown, "Best excursion") == "+1.81\xa0R"
    assert "3 closed signals, 1 active" in shown
    assert shown.count(">Buy EURUSD</a>") == 4
    assert "−1.00\xa0R" in shown
    assert 'class="pages"' not in shown
    assert re.findall(r'<th scope="col"[^>]*>([^<]+)</th>', shown.split('id="by-symbol"')[1]) == [
        *("Instrument", "Episodes", "Win rate", "Average", "Total")
    ]


def test_picture_says_in_words_and_in_a_table_what_it_shows(anna: User) -> None:
    shown = page_of(anna)
    assert 'role="img" aria-labelledby="equity-title equity-words"' in shown
    assert "Results of anna summed up, in R" in shown
    assert "From zero to +1.31\xa0R over 4 episodes; never above +1.81\xa0R, never below 0.00\xa0R." in shown
    assert shown.count("\xa0R</td>") >= len(PRICES)


def test_small_loss_is_never_shown_as_zero() -> None:
    user = make_user("anna")
    make_signal(user=user, status="closed", close_price=Decimal("1.0841"), closed_at=NOON)
    shown, loss = page_of(user), "−0.03\xa0R"
    assert [figure(shown, f"{name} result") for name in ("Average", "Total")] == [loss, loss]
    assert figure(shown, "Deepest drawdown") == "0.03\xa0R"
    assert f'class="bottom-label" aria-hidden="true">{loss}<' in shown
    assert f"From zero to {loss} over 1 episode; never above 0.00\xa0R, never below {loss}." in shown
    # The table of the chart, the signal, average and total by instrument.
    assert shown.count(f">{loss}</td>") == 4
    assert "0.0\xa0R" not in shown


def test_signal_by_the_rules_of_before_after_others_had_begun_is_shown_and_counts_nowhere(anna: User) -> None:
    RulesBegun.objects.create(rules=2, begun_at=NOON)
    won: dict[str, Any] = {"user": anna, "close_price": Decimal("1.0900"), "status": "closed"}
    for hours in (-1, 1):
        at = NOON + timedelta(hours=hours)
        make_signal(published_at=at, closed_at=at, **won)
    make_signal(user=anna, published_at=at)
    shown = page_of(anna)
    assert figure(shown, "Episodes") == "5"
    assert "4 closed signals, 2 active" in shown
    assert "1 more followed the earlier rules" in shown
    assert len(listed(shown)) == 7
    # The demo tells of a past that nobody saw.
    demo = make_signal(user=make_user("aurora"), published_at=at, is_demo=True).user
    assert figure(page_of(demo), "Episodes") == "1"


def listed(answer: str) -> list[str]:
    return re.findall(r'class="name"><a href="/signals/([^"]+)"', answer)


def link(shown: str, words: str) -> str | None:
    found = re.search(rf'href="([^"]+)">{words}</a>', shown)
    return found and found[1]


def test_every_signal_is_reached_by_way_of_the_older_ones(anna: User) -> None:
    for number in range(2 * PER_PAGE):
        make_signal(user=anna, published_at=NOON - timedelta(hours=number))
    shown, query = page_of(anna), "?page=1"
    assert link(shown, "Newer signals") is None
    reached = []
    while query:
        shown = unescape(Client().get(f"/publishers/anna{query.partition('#')[0]}").text)
        reached += listed(shown)
        query = link(shown, "Older signals") or ""
    feed = Signal.objects.filter(user=anna).for_feed().values_list("pk", flat=True)
    assert reached == [str(pk) for pk in feed]
    assert "Earlier signals" in shown
    assert "41–44 of 44" in shown
    assert link(shown, "Newer signals") == "?page=2#latest"


@pytest.mark.parametrize(("asked", "got"), [("", 1), ("0", 1), ("-1", 1), ("x", 1), ("²", 1), ("99", 3)])
def test_page_that_does_not_exist_is_the_nearest(asked: str, got: int) -> None:
    assert read_page(asked, 2 * PER_PAGE + 4).number == got


def test_demo_publisher_states_its_rule() -> None:
    name = next(iter(STATEMENTS))
    user = make_user(name)
    make_signal(user=user)
    assert STATEMENTS[name] not in page_of(user)
    make_account(user, is_demo=True)
    assert STATEMENTS[name] in page_of(user)


def test_every_result_has_a_mark_that_leads_to_its_proof() -> None:
    user = make_user("anna")
    closed, active = make_published(user=user), make_published(user=user)
    close_at(closed, Decimal("1.0874"), Decimal("1.0875"))
    shown = page_of(user)
    assert set(re.findall(r'class="mark (\w+)" href="([^"]+)"', shown)) == {
        ("recorded_here", f"/signals/{signal.pk}#proof") for signal in (closed, active)
    }


def test_result_that_the_ledger_does_not_know_has_no_verified_mark(anna: User) -> None:
    shown = page_of(anna)
    assert shown.count(">\n  Not verified<") == len(PRICES) + 1
    assert "Verified" not in shown.split('id="latest"')[1].split("</table>")[0]


def test_snippet_shows_the_scorecard_and_leads_to_the_page(anna: User) -> None:
    shown = page_of(anna)
    assert (
        '<a href="http://testserver/publishers/anna"><img src="http://testserver/publishers/anna/scorecard.svg"'
        ' width="480" height="160" alt="Results of anna on Tickwire"></a>'
    ) in shown
    assert shown.count('src="/publishers/anna/scorecard.svg"') == 1


def test_snippet_escapes_the_name_once_for_the_other_site_and_once_for_this_page() -> None:
    user = make_user("<b>&")
    make_signal(user=user)
    shown = Client().get("/publishers/%3Cb%3E&").text
    assert "alt=&quot;Results of &amp;lt;b&amp;gt;&amp;amp; on Tickwire&quot;" in shown
    assert "&lt;a href=&quot;http://testserver/publishers/%3Cb%3E&amp;amp;&quot;&gt;" in shown


def test_result_that_reads_as_nothing_has_no_colour() -> None:
    results = map(Decimal, ("0.0049", "-0.0049", "0.0051", "-0.0051"))
    assert [tone(each) for each in results] == ["", "", "gain", "loss"]


def test_page_is_refused_while_the_records_are_first_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("signals_feed.publishers.standings.WAIT_S", 0)

    def make(last: object) -> Standings:
        assert Client().get("/publishers").status_code == 503
        return {}

    kept_standings.get(0, make)
