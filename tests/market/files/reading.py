"""A text or bytes as a file of ticks, read in blocks of whole lines."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import NamedTuple

from market.engine.files.format import FilePosition, Format, Subject
from market.prices.records import Tick


class Read(NamedTuple):
    ticks: list[Tick]
    lines: list[int]
    malformed: list[int]


def read(format: Format, content: str | bytes, path: str = "file", lines_each: int = 3) -> Read:
    whole = Read([], [], [])
    content = content.encode() if isinstance(content, str) else content
    blocks = blocks_of(content, lines_each) if b"\n" in content else iter([content])
    for batch in format.read(blocks, Subject("EURUSD", 0.00001, path), FilePosition()):
        whole.ticks.extend(batch.ticks)
        whole.lines.extend(batch.lines)
        whole.malformed.extend(batch.malformed)
    return whole


def blocks_of(content: bytes, lines_each: int) -> Iterator[bytes]:
    lines = content.splitlines(keepends=True)
    for start in range(0, len(lines), lines_each):
        yield b"".join(lines[start : start + lines_each])


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)
