"""Whom the script takes for dead, on a clock that the test sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from redis import Redis

from accounts.open_streams.redis_slots import SCRIPT, TELL_FIRST

CLOCKED = SCRIPT.replace("redis.call('TIME')", "redis.call('LRANGE', 'test:clock', 0, -1)")
LIMIT, HOUR_S, ROOT = 2, 3600, "tickwire:streams:"


class Process:
    """What a process would ask for, and nothing by itself."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.name = world, name
        self.slots: dict[str, int] = {}
        self.ended: list[str] = []
        if self.beat() == -1:
            self.tell()

    def ask(self, *asks: Any) -> Any:
        return self.call(asks)[0]

    def call(self, *questions: Any) -> list[Any]:
        packed = [msgspec.msgpack.encode(part) for part in (self.ended, questions)]
        answer, ended, self.was_known = msgspec.msgpack.decode(
            self.world.script(keys=[ROOT], args=[self.name, *packed])
        )
        self.ended = [name for name, _ in ended]
        for name in self.ended:
            self.slots.pop(name, None)
        return list(answer)

    def beat(self) -> int:
        """How many slots Redis has of it, or -1 if it has to tell them."""
        count: int = self.ask("beat")[0]
        return count if self.was_known else -1

    def claim(self) -> bool:
        name = f"{self.name} {len(self.slots) + 1} 1.0 /ws/market"
        answer = self.ask("claim", name, 1, LIMIT, False)
        if answer == TELL_FIRST:
            self.tell()
            answer = self.ask("claim", name, 1, LIMIT, False)
        if answer[0]:
            self.slots[name] = answer[1]
        return bool(answer[0])

    def tell(self) -> None:
        slots = [(name, 1, LIMIT, order) for name, order in self.slots.items()]
        self.call(("tell", slots), ("complete",))

    def tell_of_many(self) -> None:
        numbers = range(1, 2001)
        self.ask("tell", [(f"{self.name} {n} 1.0 /ws/market", n, LIMIT, n) for n in numbers])

    @property
    def open(self) -> int:
        return len(self.ask("of", 1))


class World:
    """A Redis whose clock the test sets."""

    def __init__(self, client: Any) -> None:
        self.client, self.script = client, client.register_script(CLOCKED)
        self._now_us = 1_790_000_000_000_000
        self.set_clock(0)

    def set_clock(self, by_s: float) -> None:
        self._now_us += int(by_s * 1_000_000)
        self.client.delete("test:clock")
        self.client.rpush("test:clock", *divmod(self._now_us, 1_000_000))

    def pass_seconds(self, seconds: float, *beating: Process) -> None:
        for _ in range(int(seconds)):
            self.set_clock(1)
            for process in beating:
                process.beat()


@pytest.fixture
def world(own_redis: str) -> Iterator[World]:
    with Redis.from_url(own_redis) as client:
        client.flushall()
        yield World(client)


@pytest.fixture
def both(world: World) -> tuple[Process, Process]:
    """The second holds all slots of the account."""
    here, there = Process(world, "here"), Process(world, "there")
    assert there.claim()
    assert there.claim()
    assert not here.claim()
    return here, there


Both = tuple[Process, Process]


def test_process_that_beats_is_kept_and_a_silent_one_forgotten_after_three_seconds(
    world: World, both: Both
) -> None:
    here, there = both
    world.pass_seconds(60, here, there)
    world.pass_seconds(2, here)
    assert here.open == 2
    world.pass_seconds(1, here)
    assert here.open == 0
    assert here.claim()


def test_late_process_gets_the_slots_back_that_nobody_took(world: World, both: Both) -> None:
    here, there = both
    world.pass_seconds(10, here)
    assert there.beat() == -1
    there.tell()
    assert (there.ended, here.open, there.beat()) == ([], 2, 2)


def test_late_process_loses_the_newest_of_those_that_others_took(world: World, both: Both) -> None:
    here, there = both
    oldest, newest = there.slots
    world.pass_seconds(10, here)
    assert here.claim()
    assert there.beat() == -1
    there.tell()
    assert (list(there.slots), there.ended, here.open) == ([oldest], [newest], 2)


def test_late_process_has_to_tell_before_it_may_claim(world: World, both: Both) -> None:
    here, there = both
    world.pass_seconds(10, here)
    assert not there.claim()
    assert here.open == 2


def test_process_that_told_because_redis_forgot_loses_nothing(world: World, both: Both) -> None:
    here, there = both
    world.client.delete(*world.client.keys("tickwire:*"))
    assert here.claim()
    assert there.beat() == -1
    there.tell()
    assert (there.ended, here.open) == ([], 3)


def test_dead_with_many_slots_are_taken_out_bit_by_bit(world: World) -> None:
    here, there = Process(world, "here"), Process(world, "there")
    there.tell_of_many()
    world.pass_seconds(3, here)
    left = [here.ask("count")]
    while here.ask("bury"):
        left.append(here.ask("count"))
    assert here.ask("count") == 0
    assert left == sorted(left, reverse=True)
    assert max(before - after for before, after in zip(left, left[1:], strict=False)) < 1000


def test_what_a_process_no_longer_has_is_found_and_dropped(world: World) -> None:
    here = Process(world, "here")
    here.tell_of_many()
    cursor, known = "0", dict[str, str]()
    while True:
        cursor, held = here.ask("known", cursor)
        known |= dict(zip(held[::2], held[1::2], strict=True))
        if cursor == "0":
            break
    assert len(known) == 2000
    here.ask("drop", [part for pair in known.items() for part in pair])
    assert (here.ask("count"), here.beat()) == (0, 0)


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S, 5])
def test_clock_that_was_set_costs_nobody_a_slot(world: World, both: Both, jump_s: int) -> None:
    here, there = both
    world.pass_seconds(1, here, there)
    world.set_clock(jump_s)
    # The one is heard first, and once more before the other is.
    here.beat()
    world.pass_seconds(1, here)
    assert there.beat() == 2
    assert here.open == 2


@pytest.mark.parametrize("jump_s", [HOUR_S, -HOUR_S])
def test_after_the_clock_was_set_the_dead_are_found(world: World, both: Both, jump_s: int) -> None:
    here, _ = both
    world.set_clock(jump_s)
    here.beat()
    world.pass_seconds(2, here)
    assert here.open == 0


def test_newest_stays_the_newest_when_the_clock_is_set_back(world: World, both: Both) -> None:
    here, there = both
    here.ask("enforce", 1, 1)
    world.set_clock(-HOUR_S)
    assert here.claim()
    here.ask("enforce", 1, 1)
    assert (len(here.slots), len(there.slots)) == (0, 2)
    there.beat()
    assert len(there.slots) == 1


def test_newcomer_does_not_judge_at_once(world: World, both: Both) -> None:
    world.set_clock(10)
    newcomer = Process(world, "newcomer")
    assert newcomer.open == 2
    world.pass_seconds(1, newcomer)
    assert newcomer.open == 0


def test_end_is_said_again_until_it_was_heard(both: Both) -> None:
    here, there = both
    here.ask("enforce", 1, 0)
    there.beat()
    lost, there.ended = there.ended, []
    there.beat()
    assert there.ended == lost
    assert len(lost) == 2
    there.beat()
    assert there.ended == []


def test_ended_slot_is_not_told_back_in(both: Both) -> None:
    here, there = both
    here.ask("enforce", 1, 0)
    there.tell()
    assert (there.slots, here.open) == ({}, 0)
