"""What works, since when it does not, and whether this process is ready.

A fault that all processes share makes none of them unready: sending the requests elsewhere would not help,
and most of them succeed. A fault in this process alone takes it out."""

from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

OK = "ok"
# In the last report of a process, instead of its findings.
STOPPED = "stopped"
component_shares: dict[str, Callable[[], float | None]] = {}
"""How much of a component of the status page is in order, as a share of 1, by its name; None where there is
nothing to judge. Rooms add theirs in the `ready` of their app."""

# A short fault, such as a broken connection, is no reason to leave.
ALONE_AFTER_S = 3.0

# Another process's success counts from a moment at which this one had failed already.
MARGIN_S = 1.0

# What others reported longer ago than this no longer counts.
HEARD_WITHIN_S = 15.0


class StandingFault(NamedTuple):
    why: str
    since: float


class Readiness(NamedTuple):
    reasons: list[str]
    """Why no requests should come here; empty while they may."""
    degraded: list[str]
    checks: dict[str, str]


class Findings:
    """The findings of this process and the reports of others."""

    def __init__(self, times: float = 1.0) -> None:
        self._times = times
        self._found_at: dict[str, float] = {}
        self._faults: dict[str, StandingFault] = {}
        self._elsewhere: dict[str, float] = {}

    def note(self, name: str, why: str, now: float) -> None:
        if why == OK:
            self._faults.pop(name, None)
            self._found_at[name] = now
        else:
            known = self._faults.get(name)
            self._faults[name] = StandingFault(why, known.since if known else now)

    def hear(self, ages_s: Mapping[str, float], now: float) -> None:
        """How long ago another process found each in order."""
        for name, age_s in ages_s.items():
            self._elsewhere[name] = max(self._elsewhere.get(name, float("-inf")), now - age_s)

    def ages_s(self, now: float) -> dict[str, float]:
        """What is reported to others: how long ago each check that has not failed since was in order."""
        return {name: round(now - at, 3) for name, at in self._found_at.items() if name not in self._faults}

    def is_alone(self, name: str, now: float) -> bool:
        fault, elsewhere = self._faults[name], self._elsewhere.get(name, float("-inf"))
        lasts = now - fault.since >= self._times * ALONE_AFTER_S
        is_news = now - elsewhere < self._times * HEARD_WITHIN_S
        return lasts and elsewhere > fault.since + MARGIN_S and is_news

    def verdict(self, own: Iterable[str], now: float) -> Readiness:
        """`own`: what is wrong with this process itself, whatever else holds."""
        faults = sorted(self._faults)
        alone = [name for name in faults if self.is_alone(name, now)]
        degraded = [name for name in faults if name not in alone]
        whys = {name: fault.why for name, fault in self._faults.items()}
        checks = {name: whys.get(name, OK) for name in sorted(self._found_at.keys() | whys)}
        return Readiness([*own, *alone], degraded, checks)
