from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from decimal import Decimal
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from signals_feed.publishers.record import Closed, Event, Filled, Mark, Record, Scorecard, place
from tests.factories import NOON

NO_MARKS: Mapping[int, float] = {}


def filled(number: int, minute: int = 0, **changes: object) -> Filled:
    """It risks 1 in price, and its unit is as large."""
    at = NOON + timedelta(minutes=minute)
    one = Filled(UUID(int=number), at, "EURUSD", "buy", Decimal(100), Decimal(99), Decimal(1), "venue")
    return one._replace(**changes)  # type: ignore[arg-type]


def closed(number: int, gain: str | float, minute: int = 0, **changes: object) -> Closed:
    at = NOON + timedelta(minutes=minute)
    one = Closed(UUID(int=number), at, Decimal(str(gain)), "manual", None, None)
    return one._replace(**changes)  # type: ignore[arg-type]


def read(*events: Event, marks: Mapping[int, float] = NO_MARKS, keeps_mark: bool = True) -> Scorecard:
    record = Record()
    for event in events:
        record.add(event)
    given_marks = {UUID(int=key): Mark(Decimal(str(gain)), keeps_mark) for key, gain in marks.items()}
    return record.read(given_marks, NOON + timedelta(days=1))


def one_by_one(*gains: float) -> list[Event]:
    return [
        event
        for number, gain in enumerate(gains)
        for event in (filled(number, number), closed(number, gain, number))
    ]


def test_copies_of_a_trade_are_one_episode() -> None:
    fills = [filled(number, number) for number in range(31)]
    card = read(*fills, *(closed(number, 1, 40) for number in range(31)))
    assert card.closed == 31
    assert (card.figures.all.episodes, card.figures.all.wins) == (1, 1)
    assert card.figures.all.total_r == 1
    assert card.figures.all.too_few


def test_episode_takes_in_what_begins_while_its_first_signal_is_open() -> None:
    card = read(
        filled(1), filled(2), filled(3, direction="sell"), filled(4, symbol="XAUUSD"),
        closed(1, 2),
        # The second is still open, but the first is not.
        filled(5),
        closed(5, 7), closed(2, 4), closed(3, 1), closed(4, -1),
    )  # fmt: skip
    assert [point.equity_r for point in card.figures.equity.points] == [7, 9, 10, 9]
    assert {symbol: each.total_r for symbol, each in card.figures.by_symbol.items()} == {
        "EURUSD": 10,
        "XAUUSD": -1,
    }


@pytest.mark.parametrize(
    ("first", "others", "result"),
    [
        # A loss that is surrounded by signals at zero.
        (-1, [0] * 19, "-1"),
        (2, [-1] * 3, "-0.25"),
        (2, [5, 5], "2"),
        (-1, [3], "-1"),
        (1, [0, 0], "0.3333"),
    ],
)
def test_result_of_an_episode_is_the_lower_of_its_first_and_the_mean(
    first: float, others: list[float], result: str
) -> None:
    gains = [first, *others]
    fills = [filled(number) for number in range(len(gains))]
    card = read(*fills, *(closed(number, gain) for number, gain in enumerate(gains)))
    assert card.figures.all.total_r == Decimal(result)
    # The same while all of it, or only the first, is still open.
    assert read(*fills, marks=dict(enumerate(gains))).figures.all.total_r == Decimal(result)
    card = read(*fills, *(closed(*each) for each in list(enumerate(gains))[1:]), marks={0: first})
    assert card.figures.all.total_r == Decimal(result)


def test_open_losers_are_in_all_figures_and_open_winners_win_nothing_yet() -> None:
    hedged = one_by_one(1, 1, 0)
    for number in range(10, 19):
        hedged += [filled(number, 20, symbol=f"A{number}")]
    marks = dict.fromkeys(range(10, 17), -0.5) | {17: 3.0, 18: 0.0}
    figures = read(*hedged, marks=marks).figures
    assert (figures.all.wins, figures.all.losses, figures.all.episodes) == (2, 8, 12)
    assert figures.all.win_rate == Decimal("0.2")
    assert (figures.all.total_r, figures.all.expectancy_r) == (Decimal("1.5"), Decimal("0.125"))
    assert figures.drawdown.deepest_r == Decimal("0.5")
    assert figures.equity.points[-1].equity_r == Decimal("1.5")
    assert list(figures.by_symbol) == sorted(figures.by_symbol)
    assert figures.by_symbol["A10"].win_rate == 0


def test_thirty_episodes_are_enough_once_they_have_ended() -> None:
    events = one_by_one(*[0] * 30)
    assert read(*events[:-1], marks={29: 0}).figures.all.too_few
    assert not read(*events).figures.all.too_few


@pytest.mark.parametrize(
    ("gains", "deepest", "longest"),
    [
        ([1, 1, 1], "0", 0),
        # The first may lose: the curve begins at zero.
        ([-1, -1, 3], "2", 2),
        ([3, -1, -0.5, 2, -1], "1.5", 2),
        ([2, -1, 0.5, 0.25, 0.25, -1], "1", 3),
        ([5, -1, -1, -1, -1, 4, -3], "4", 4),
    ],
)
def test_drawdown_is_the_deepest_fall_and_the_longest_stay_below_a_peak(
    gains: list[float], deepest: str, longest: int
) -> None:
    drawdown = read(*one_by_one(*gains)).figures.drawdown
    assert (drawdown.deepest_r, drawdown.longest) == (Decimal(deepest), longest)


def test_signals_of_an_episode_are_counted_where_episodes_are_not() -> None:
    copies = [filled(number) for number in range(9)]
    ends = [closed(number, -1, number) for number in range(8)]
    figures = read(*copies, *ends, marks={8: -1}).figures
    assert (figures.all.episodes, figures.all.signals, figures.drawdown.longest) == (1, 8, 9)
    assert [point.signals for point in figures.equity.points] == [9]


def test_nobody_has_a_rate_before_the_first_fill() -> None:
    card = read()
    figures = card.figures
    assert (figures.all.win_rate, figures.all.expectancy_r, card.best_r, card.worst_r) == (None,) * 4
    assert figures.all.too_few
    assert figures.equity.points == []


def test_lists_are_apart_and_old_rules_are_in_none() -> None:
    card = read(
        filled(1), filled(2, ranked_in="push"), filled(3, ranked_in=None),
        closed(1, 1), closed(2, -1), closed(3, 2),
    )  # fmt: skip
    assert {name: each.purses[0] for name, each in card.standings.items()} == {"venue": 1.01, "push": 0.99}


def test_rank_counts_in_its_own_unit_and_keeps_no_gain_without_the_mark() -> None:
    wide = filled(1, rank_unit=Decimal(2))

    def purse(*events: Event, **mark: object) -> float:
        return read(*events, **mark).standings["venue"].purses[0]  # type: ignore[arg-type]

    assert read(wide, closed(1, 3)).figures.all.total_r == 3
    assert purse(wide, closed(1, 3)) == pytest.approx(1.015)
    assert purse(wide, closed(1, 3, keeps_mark=False)) == 1
    assert purse(wide, marks={1: 3}) == pytest.approx(1.015)
    assert purse(wide, marks={1: 3}, keeps_mark=False) == 1


def test_a_stake_does_not_depend_on_what_closes_at_its_own_time() -> None:
    events: list[Event] = [closed(1, 1, 5), filled(2, 5), filled(1), closed(2, 0, 5)]
    assert [(type(each), each.key.int) for each in sorted(events, key=place)] == [
        (Filled, 1), (Filled, 2), (Closed, 1), (Closed, 2),
    ]  # fmt: skip


def test_reasons_and_excursions_are_of_all_that_closed() -> None:
    extremes = ((None, None), ("0.5", "-1.2"), ("2.25", "0"), ("0", "-0.3"))
    events: list[Event] = []
    for number, pair in enumerate(extremes):
        best_r, worst_r = (None if each is None else Decimal(each) for each in pair)
        events += [filled(number), closed(number, 0, best_r=best_r, worst_r=worst_r)]
    card = read(*events, filled(9), closed(9, 0, reason="expired"))
    assert (card.best_r, card.worst_r) == (Decimal("2.25"), Decimal("-1.2"))
    assert card.by_reason == {"manual": 4, "expired": 1}


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-3, 3)), max_size=30))
def test_what_was_read_before_changes_no_later_answer_and_is_changed_by_none(
    steps: list[tuple[int, int]],
) -> None:
    asked, still_open, events = Record(), list[int](), list[Event]()
    answers: list[tuple[Scorecard, Scorecard]] = []
    for number, (step, gain) in enumerate(steps):
        event = (
            closed(still_open.pop(step), gain, number) if step < len(still_open) else filled(number, number)
        )
        if isinstance(event, Filled):
            still_open.append(number)
        events.append(event)
        asked.add(event)
        marks = dict.fromkeys(still_open, gain)
        whole = read(*events, marks=marks)
        now = NOON + timedelta(days=1)
        given_marks = {UUID(int=key): Mark(Decimal(each)) for key, each in marks.items()}
        answers.append((asked.read(given_marks, now), whole))
    assert all(answer == whole for answer, whole in answers)
