"""The minutes of a day, from three places: its ticks, its file and the database."""

from collections.abc import Iterable, Mapping, Sequence

from core.times import MINUTE_MS, iso_s

from .files import ArchivedMinute
from .rebuild import PRICES, RebuiltMinute

IMPORTED = "import"
MOST_TOLD = 5
FIELDS = ArchivedMinute._fields


class MinuteFindings:
    """Of one symbol and day."""

    def __init__(self) -> None:
        self.faults: list[str] = []
        self.equal = self.imported = self.in_holes = self.unknown = self.filled_since = 0

    def add(self, opened_ms: int, says: str) -> None:
        self.faults.append(f"{iso_s(opened_ms)}: {says}")


def compare_rebuilt(
    made: Mapping[int, RebuiltMinute],
    stored: Mapping[int, ArchivedMinute],
    holes: Sequence[tuple[int, int]],
    *,
    knows_before: bool,
) -> MinuteFindings:
    """The minutes that the ticks make with those that are stored: none more, none less, every field."""
    found, after_import, first_ms = MinuteFindings(), False, min(made, default=0)
    for opened_ms in sorted(made.keys() | stored.keys()):
        own, kept = made.get(opened_ms), stored.get(opened_ms)
        # A flat minute repeats what stood before it, though that came out of a file.
        after_import = is_imported(kept) or (after_import and kept is not None and not kept.volume)
        if after_import:
            found.imported += 1
        elif own is not None and kept is not None and not (differing := differences(own, kept)):
            found.equal += 1
        elif any(start < opened_ms + MINUTE_MS and end >= opened_ms for start, end in holes):
            found.in_holes += 1
        elif own is None and not knows_before and opened_ms < first_ms:
            found.unknown += 1
        elif own is None:
            found.add(opened_ms, "it is stored, and no tick of the archive makes it")
        elif kept is None:
            found.add(opened_ms, "the ticks make it, and it is not stored")
        else:
            found.add(opened_ms, f"the ticks make another one: {'; '.join(differing)}")
    return found


def is_imported(minute: ArchivedMinute | None) -> bool:
    return minute is not None and IMPORTED in minute.source.split("+")


def differences(own: RebuiltMinute, kept: ArchivedMinute) -> list[str]:
    prices = {name: getattr(own.bar, name) for name in PRICES}
    made = ArchivedMinute(**prices, basis=own.basis, source=own.bar.source)
    return _differing(made, kept)


def _differing(one: ArchivedMinute, other: ArchivedMinute) -> list[str]:
    return [
        f"{name} {_shown(first)} instead of {_shown(second)}"
        for name, first, second in zip(FIELDS, one, other, strict=True)
        if _plain(first) != _plain(second)
    ]


def _plain(value: float | str | None) -> float | str | None:
    return round(value, 8) if isinstance(value, float) else value


def _shown(value: float | str | None) -> str:
    return "nothing" if value is None else str(value)


def compare_database(
    in_file: Mapping[int, ArchivedMinute], in_database: Mapping[int, ArchivedMinute]
) -> MinuteFindings:
    """What is stored now may have been filled since, or imported; nothing else may differ."""
    found = MinuteFindings()
    for opened_ms in sorted(in_file.keys() | in_database.keys()):
        archived, now = in_file.get(opened_ms), in_database.get(opened_ms)
        if is_imported(now) and archived != now:
            found.imported += 1
        elif archived is None:
            found.filled_since += 1
        elif now is None:
            found.add(opened_ms, "it is in the archive, and no longer in the database")
        elif differing := _differing(archived, now):
            found.add(opened_ms, f"the archive has {'; '.join(differing)}")
        else:
            found.equal += 1
    return found


def told(faults: Iterable[str]) -> str:
    every = list(faults)
    more = f" … and {len(every) - MOST_TOLD} more" if len(every) > MOST_TOLD else ""
    return " · ".join(every[:MOST_TOLD]) + more
