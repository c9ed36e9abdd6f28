"""When a process is ready: a table of what it found and what others found."""

from __future__ import annotations

from serving.readiness.findings import ALONE_AFTER_S, HEARD_WITHIN_S, OK, Findings

BEGAN = 100.0
LATER = BEGAN + ALONE_AFTER_S + 2


def make_picture() -> Findings:
    picture = Findings()
    for name in ("database", "redis"):
        picture.note(name, OK, BEGAN - 1)
    picture.note("redis", "away", BEGAN)
    return picture


def test_what_is_in_order_is_ready() -> None:
    picture = Findings()
    picture.note("database", OK, 1.0)
    assert picture.verdict((), 2.0) == ([], [], {"database": OK})


def test_what_is_away_for_all_only_degrades() -> None:
    picture = make_picture()
    assert picture.verdict((), LATER) == ([], ["redis"], {"database": OK, "redis": "away"})


def test_what_another_process_has_makes_this_one_unready() -> None:
    picture = make_picture()
    picture.hear({"redis": 0.5}, LATER)
    assert picture.verdict((), LATER) == (["redis"], [], {"database": OK, "redis": "away"})


def test_what_another_process_had_before_it_was_lost_says_nothing() -> None:
    picture = make_picture()
    picture.hear({"redis": LATER - BEGAN + 0.5}, LATER)
    assert picture.verdict((), LATER).reasons == []


def test_hiccup_is_no_reason_to_go() -> None:
    picture = make_picture()
    at = BEGAN + ALONE_AFTER_S - 0.1
    picture.hear({"redis": 0.0}, at)
    assert picture.verdict((), at).reasons == []


def test_who_fell_silent_proves_nothing_any_more() -> None:
    picture = make_picture()
    picture.hear({"redis": 0.0}, LATER)
    assert picture.verdict((), LATER + HEARD_WITHIN_S - 0.1).reasons == ["redis"]
    assert picture.verdict((), LATER + HEARD_WITHIN_S).reasons == []


def test_fault_lasts_from_its_first_sight() -> None:
    picture = make_picture()
    picture.note("redis", "full", LATER)
    picture.hear({"redis": 0.5}, LATER)
    assert picture.verdict((), LATER).reasons == ["redis"]


def test_what_came_back_is_in_order() -> None:
    picture = make_picture()
    picture.hear({"redis": 0.5}, LATER)
    picture.note("redis", OK, LATER)
    assert picture.verdict((), LATER) == ([], [], {"database": OK, "redis": OK})


def test_own_faults_stand_before_all_others() -> None:
    assert make_picture().verdict(["stopping"], LATER).reasons == ["stopping"]


def test_others_hear_of_nothing_that_is_broken_here() -> None:
    assert make_picture().ages_s(BEGAN + 1) == {"database": 2.0}
