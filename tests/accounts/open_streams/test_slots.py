from __future__ import annotations

import asyncio

from accounts.open_streams.stream_slots import EndCode, MemorySlots, OpenStream, Slot


def heard(act: str) -> list[EndCode]:
    """What a stream hears of its end."""

    async def go() -> list[EndCode]:
        here, codes = MemorySlots(), list[EndCode]()
        slot = Slot(OpenStream("7", "/ws/market", 1.0), 1, codes.append, here.release)
        here.claim(slot, takeover=False)
        slot.end("taken_over")
        if act == "released":
            slot.release()
        else:
            slot.end("stream_closed")
        await asyncio.sleep(0)
        return codes

    return asyncio.run(go())


def test_the_end_of_a_stream_is_said_once() -> None:
    assert heard("ended twice") == ["taken_over"]


def test_nothing_is_said_once_a_slot_is_released() -> None:
    assert heard("released") == []
