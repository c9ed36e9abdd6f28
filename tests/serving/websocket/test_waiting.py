from __future__ import annotations

import asyncio

import pytest

from serving.websocket.waiting import Gate, Inbox


async def test_events_come_in_their_order_and_wake_who_waits() -> None:
    inbox = Inbox(asyncio.get_running_loop())
    inbox.arrival().cancel()
    inbox.put_nowait("a")
    assert inbox.take() == "a"
    arrival = inbox.arrival()
    assert not arrival.done()
    for event in "bc":
        inbox.put_nowait(event)
    await arrival
    assert (inbox.qsize(), [inbox.take() for _ in range(2)], inbox.empty()) == (2, ["b", "c"], True)


async def test_all_wait_at_a_closed_gate_and_who_gives_up_keeps_nobody_from_going_on() -> None:
    gate, passed = Gate(asyncio.get_running_loop()), []

    async def pass_through(name: str) -> None:
        await gate.wait()
        passed.append(name)

    await pass_through("first")
    gate.clear()
    gate.clear()
    impatient, *others = [asyncio.create_task(pass_through(name)) for name in "abc"]
    await asyncio.sleep(0)
    assert (gate.is_set(), passed) == (False, ["first"])
    impatient.cancel()
    gate.set()
    await asyncio.gather(*others)
    assert (gate.is_set(), passed) == (True, ["first", "b", "c"])
    with pytest.raises(asyncio.CancelledError):
        await impatient
