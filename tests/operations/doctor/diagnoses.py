"""What the doctor said, as tests ask for it."""

from __future__ import annotations

from collections.abc import Iterable

from operations.doctor.diagnosis import OK, Diagnosis


def faults(found: Iterable[Diagnosis]) -> list[tuple[str, str]]:
    """Level and sentence of whatever is not in order; each has a fix."""
    wrong = [each for each in found if each.level != OK]
    assert all(each.fix for each in wrong)
    return [(each.level, each.says) for each in wrong]


def only_fault(found: Iterable[Diagnosis]) -> tuple[str, str]:
    (fault,) = faults(found)
    return fault
