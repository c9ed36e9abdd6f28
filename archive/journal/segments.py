"""The folder of the journal: numbered segments, in the order in which they were opened."""

import os
import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import NamedTuple

from archive.stores import sync_folder

from .frames import Frame, OnDamage, Opened, whole_frames

NAME = re.compile(r"(\d{10})-(\d{4}-\d\d-\d\d)\.ticks", re.ASCII)
BLOCK = 1 << 20
READABLE = 0o600


class TickSegment(NamedTuple):
    number: int
    day: date
    """No tick of a later day is in it."""
    path: Path

    def frames(self, on_damage: OnDamage = lambda offset, size: None) -> Iterator[Frame]:
        with self.path.open("rb") as file:
            yield from whole_frames(iter(lambda: file.read(BLOCK), b""), on_damage)

    def head(self) -> Opened | None:
        """None where it was torn right at its beginning."""
        first = next(self.frames(), None)
        return first if isinstance(first, Opened) else None


class TickJournal:
    def __init__(self, path: Path) -> None:
        self.path = path

    def segments(self) -> list[TickSegment]:
        found = ((NAME.fullmatch(path.name), path) for path in self.path.glob("*.ticks"))
        return sorted(
            TickSegment(int(match[1]), date.fromisoformat(match[2]), path) for match, path in found if match
        )

    def create(self, day: date) -> tuple[int, Path]:
        """The descriptor and the path of a new segment, after all that are there."""
        if not self.path.is_dir():
            self.path.mkdir(parents=True, mode=0o700)
            sync_folder(self.path.parent)
        number = max((segment.number for segment in self.segments()), default=0)
        while True:
            number += 1
            try:
                path = self.path / f"{number:010d}-{day}.ticks"
                opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, READABLE)
            except FileExistsError:
                # Another engine that stands by on this machine came first.
                continue
            sync_folder(self.path)
            return opened, path

    def remove(self, segment: TickSegment) -> None:
        segment.path.unlink(missing_ok=True)
        sync_folder(self.path)

    def set_aside(self, segment: TickSegment, why: str) -> Path:
        """It is no longer read, and an operator may look at it; returns where it is."""
        aside = segment.path.with_name(f"{segment.path.name}.{why}")
        segment.path.rename(aside)
        sync_folder(self.path)
        return aside
