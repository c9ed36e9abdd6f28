"""Whether the ledger was written in its order, as far as its entries say so themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from signals_feed.contradictions import UNREADABLE, WRITTEN_WITHIN_MS
from signals_feed.record import (
    ARCHIVE,
    ARM,
    CLOSE,
    CLOSE_REQUEST,
    FILL,
    OWN_TIME,
    PUBLISH,
    RULES,
    ms_of,
)

from .ledger import Payload

# By the rules of before, the market's time counts, which a wrong clock does not move.
DATED_BACK_MS = 3_600_000


class OrderCheck:
    """Takes all payloads in order. It keeps a number for each publisher, and the signals that are open."""

    def __init__(self) -> None:
        self.warnings: list[str] = []
        """Of what is in order, but was published by the rules of before."""
        self._written = ""
        self._begun_at = 0
        """The first publication by the new rules."""
        self._numbers = Counter[int]()
        self._sealed = set[str]()
        """Days of the archive."""
        self._open: dict[str, bool] = {}
        """Of those by the new rules, whether they are the demo's."""

    def fault(self, entry: Payload, is_demo: bool) -> str:
        """Empty if there is none. `is_demo` is for entries of before, which do not say it."""
        try:
            return next(self._faults(entry, entry.get("demo", is_demo)), "")
        except UNREADABLE as error:
            return f"cannot be read ({type(error).__name__}: {error})"

    def _faults(self, entry: Payload, is_demo: bool) -> Iterator[str]:
        kind, signal = entry["kind"], entry["signal"]
        if kind == PUBLISH:
            yield from self._misnumbered(entry)
            yield from self._by_old_rules(entry, is_demo)
        if kind == ARCHIVE:
            if entry["day"] in self._sealed:
                yield f"seals {entry['day']} once more"
            self._sealed.add(entry["day"])
        if "written" in entry:
            if entry["written"] < self._written:
                yield f"was written at {entry['written']}, before the one before it"
            self._written = entry["written"]
        elif signal in self._open or kind in (ARM, FILL, CLOSE_REQUEST):
            yield "does not say when it was written"
        if signal in self._open and kind in OWN_TIME and not self._open[signal]:
            own = entry[OWN_TIME[kind]]
            if abs(ms_of(own) - ms_of(entry["written"])) > WRITTEN_WITHIN_MS:
                yield f"is dated {own}, and was written at {entry['written']}"
        if kind == CLOSE:
            self._open.pop(signal, None)

    def _misnumbered(self, entry: Payload) -> Iterator[str]:
        user = entry["user_id"]
        self._numbers[user] += 1
        if entry.get("number", self._numbers[user]) != self._numbers[user]:
            yield f"is number {entry['number']} of its publisher, of whom there are {self._numbers[user]}"

    def _by_old_rules(self, entry: Payload, is_demo: bool) -> Iterator[str]:
        if entry.get("rules") == RULES:
            self._begun_at = self._begun_at or entry["position"]
            self._open[entry["signal"]] = is_demo
            return
        # The demo tells of a past that nobody saw.
        if self._begun_at and not is_demo:
            about = f"Entry {entry['position']} ({PUBLISH} of {entry['signal']})"
            begun = f"and entry {self._begun_at} those that had begun"
            self.warnings.append(f"{about} follows the rules of before, {begun}: it counts nowhere.")
        if self._written and not is_demo and _is_dated_back(entry["published_at"], self._written):
            yield f"is dated {entry['published_at']}, and an earlier one was written at {self._written}"


def _is_dated_back(own: str, written: str) -> bool:
    return ms_of(own) < ms_of(written) - DATED_BACK_MS
