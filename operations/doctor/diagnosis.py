"""What a check has found: one sentence, and for a fault the way out."""

from typing import NamedTuple

OK, WARN, FAIL = "ok", "warn", "fail"


class Diagnosis(NamedTuple):
    about: str
    """What was looked at, such as `redis`."""
    level: str
    says: str
    fix: str = ""


def ok(about: str, says: str) -> Diagnosis:
    return Diagnosis(about, OK, says)


def warn(about: str, says: str, fix: str) -> Diagnosis:
    return Diagnosis(about, WARN, says, fix)


def fail(about: str, says: str, fix: str) -> Diagnosis:
    return Diagnosis(about, FAIL, says, fix)
