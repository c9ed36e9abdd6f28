"""When a process says that it hears no engine, and when that it does again."""

from __future__ import annotations

import pytest

from market.runtime import HELD_UP_S, LOOK_S, SILENT_S, STOOD_STILL_S, EngineLiveness


class Ear:
    def __init__(self) -> None:
        self.told: list[tuple[float, bool]] = []
        self.now_s = 0.0
        self.liveness = EngineLiveness()
        self.liveness.watchers.append(lambda is_heard: self.told.append((self.now_s, is_heard)))

    def pass_time(self, seconds: float, *, engine_speaks: bool) -> None:
        for step in range(1, round(seconds / LOOK_S) + 1):
            self.now_s += LOOK_S
            if engine_speaks and step % 4 == 0:
                self.liveness.heard(self.now_s)
            self.liveness.look(self.now_s)


def test_silence_is_told_once_and_within_three_seconds_and_so_is_its_end() -> None:
    ear = Ear()
    ear.pass_time(10, engine_speaks=True)
    assert ear.told == []
    ear.pass_time(30, engine_speaks=False)
    ((told_s, is_heard),) = ear.told
    assert not is_heard
    assert SILENT_S < told_s - 10 < 3
    ear.pass_time(5, engine_speaks=True)
    assert ear.told[1:] == [(41, True)]
    assert ear.liveness.losses == 1


def test_an_engine_that_speaks_each_second_is_never_silent() -> None:
    ear = Ear()
    ear.pass_time(600, engine_speaks=True)
    assert ear.told == []


def test_who_was_held_up_reads_first_what_came_meanwhile() -> None:
    ear = Ear()
    ear.pass_time(4, engine_speaks=True)
    ear.now_s += STOOD_STILL_S
    ear.liveness.look(ear.now_s)
    ear.liveness.heard(ear.now_s)
    ear.pass_time(4, engine_speaks=True)
    assert ear.told == []


def test_control_who_was_held_up_and_hears_nothing_then_says_so() -> None:
    ear = Ear()
    ear.now_s += HELD_UP_S + 3
    ear.liveness.look(ear.now_s)
    ear.pass_time(2, engine_speaks=False)
    assert [is_heard for _, is_heard in ear.told] == [False]


@pytest.mark.parametrize("first", ["heard", "look"])
def test_who_stood_still_says_so_before_it_passes_on_what_came_meanwhile(first: str) -> None:
    ear = Ear()
    ear.pass_time(4, engine_speaks=True)
    ear.now_s += 20
    getattr(ear.liveness, first)(ear.now_s)
    assert ear.told == [(24, False)]
    ear.liveness.heard(ear.now_s)
    assert ear.told == [(24, False)]
    ear.pass_time(4, engine_speaks=True)
    assert ear.told[1:] == [(24 + LOOK_S, True)]
    assert ear.liveness.losses == 0


def test_who_stood_still_and_hears_nothing_stays_stale() -> None:
    ear = Ear()
    ear.now_s += 20
    ear.liveness.look(ear.now_s)
    ear.pass_time(30, engine_speaks=False)
    ear.pass_time(4, engine_speaks=True)
    assert ear.told == [(20, False), (51, True)]


def test_what_is_heard_before_the_first_look_is_not_late() -> None:
    ear = Ear()
    ear.now_s = 32_715
    ear.liveness.heard(ear.now_s)
    assert ear.told == []
