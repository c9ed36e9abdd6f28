from __future__ import annotations

import asyncio

import pytest

from serving.websocket.waiting import Gate, Inbox


async def test_events_come_in_their_order() -> None:
    inbox = Inbox(asyncio.get_running_loop())
    for event in "abc":
        inbox.put_nowait(event)
    assert (inbox.qsize(), [inbox.take() for _ in range(3)], inbox.empty()) == (3, ["a", "b", "c"], True)


async def test_who_waits_is_woken_by_an_event() -> None:
    inbox = Inbox(asyncio.get_running_loop())
    arrival = inbox.arrival()
    assert not arrival.done()
    inbox.put_nowait("a")
    inbox.put_nowait("b")
    await arrival
    assert inbox.qsize() == 2


async def test_an_event_for_a_reader_that_gave_up_stays() -> None:
    inbox = Inbox(asyncio.get_running_loop())
    inbox.arrival().cancel()
    inbox.put_nowait("a")
    assert inbox.take() == "a"


async def test_everybody_waits_at_a_closed_gate_and_goes_on_when_it_opens() -> None:
    gate, passed = Gate(asyncio.get_running_loop()), []

    async def pass_through(name: str) -> None:
        await gate.wait()
        passed.append(name)

    gate.clear()
    gate.clear()
    async with asyncio.TaskGroup() as walkers:
        for name in "ab":
            walkers.create_task(pass_through(name))
        await asyncio.sleep(0)
        assert (gate.is_set(), passed) == (False, [])
        gate.set()
    assert (gate.is_set(), passed) == (True, ["a", "b"])


async def test_who_gives_up_at_the_gate_keeps_nobody_from_going_on() -> None:
    gate = Gate(asyncio.get_running_loop())
    gate.clear()
    impatient, patient = asyncio.create_task(gate.wait()), asyncio.create_task(gate.wait())
    await asyncio.sleep(0)
    impatient.cancel()
    gate.set()
    await patient
    with pytest.raises(asyncio.CancelledError):
        await impatient


async def test_nobody_waits_at_an_open_gate() -> None:
    gate = Gate(asyncio.get_running_loop())
    gate.set()
    await gate.wait()
    assert gate.is_set()
