"""How a slot is called in Redis: "process number opened_at path", which the script takes apart too. Pure."""

from __future__ import annotations

from .slots import OpenStream, Slot


def name_of(slot: Slot, process: str) -> str:
    return f"{process} {slot.number} {slot.stream.opened_at:.6f} {slot.stream.path}"


def number_of(name: str) -> int:
    return int(name.split(" ", 2)[1])


def read(name: str, account_id: int) -> OpenStream:
    _, _, opened_at, path = name.split(" ", 3)
    return OpenStream(account_id, path, float(opened_at))
