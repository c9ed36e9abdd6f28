"""The result of a check, one sentence and how to fix a fault, and the report of all results."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from core.plain_json import encode

OK, WARN, FAIL = "ok", "warn", "fail"


class Diagnosis(NamedTuple):
    about: str
    """What was checked, such as `redis`."""
    level: str
    says: str
    fix: str = ""


def ok(about: str, says: str) -> Diagnosis:
    return Diagnosis(about, OK, says)


def warn(about: str, says: str, fix: str) -> Diagnosis:
    return Diagnosis(about, WARN, says, fix)


def fail(about: str, says: str, fix: str) -> Diagnosis:
    return Diagnosis(about, FAIL, says, fix)


# How findings are shown: to people, and to programs.
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
