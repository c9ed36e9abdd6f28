"""How findings are shown: to people, and to programs."""

from collections.abc import Iterable, Iterator

from core.plain_json import encode

from .diagnosis import FAIL, WARN, Diagnosis


def as_lines(findings: Iterable[Diagnosis]) -> Iterator[str]:
    """A line for each at once, because some checks take their time."""
    for found in findings:
        yield f"{found.level:<5} {found.about:<13} {found.says}"
        if found.fix:
            yield f"{'':<19} → {found.fix}"


def summary(findings: list[Diagnosis]) -> str:
    faults = sum(found.level == FAIL for found in findings)
    doubts = sum(found.level == WARN for found in findings)
    if not faults and not doubts:
        return "Everything that was checked is in order."
    return f"{_count(faults, 'fault')}, {_count(doubts, 'warning')}."


def as_json(findings: list[Diagnosis]) -> str:
    is_well = not any(found.level == FAIL for found in findings)
    return encode({"ok": is_well, "findings": [found._asdict() for found in findings]}).decode()


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
