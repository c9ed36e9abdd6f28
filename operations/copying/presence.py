"""Whether a process still writes to a database: an engine beats, and each process reports every 5 s."""

import time
from collections.abc import Callable

from .stores import Refused, Store

# Processes report every five seconds, and the busiest machine is not this late.
WATCHED_FOR_S, LOOK_EVERY_S = 12.0, 0.5
ENGINE, REPORTS = "market_enginestate", "status_processreport"


def refuse_if_in_use(store: Store, whose: str, say: Callable[[str], None]) -> None:
    if not was_in_use(store):
        return
    say(f"Looking for {WATCHED_FOR_S:.0f} s whether anything still writes to {whose}.")
    first, ends_at = signs_of_life(store), time.monotonic() + WATCHED_FOR_S
    while time.monotonic() < ends_at:
        time.sleep(LOOK_EVERY_S)
        if signs_of_life(store) != first:
            raise Refused(f"A service or an engine runs on {whose}. Stop all of its processes first.")


def was_in_use(store: Store) -> bool:
    """Within the last minute, by the clock of the database; only then it may be now."""
    names = store.names()
    recent = 0
    if ENGINE in names:
        held = f"SELECT count(*) FROM {ENGINE} WHERE writer <> '' AND beat_at > {store.a_minute_ago}"  # noqa: S608 - names of our own
        recent += int(str(store.ask(held)[0][0]))
    if REPORTS in names:
        reports = f"SELECT count(*) FROM {REPORTS} WHERE at > {store.a_minute_ago}"  # noqa: S608 - names of our own
        recent += int(str(store.ask(reports)[0][0]))
    return recent > 0


def signs_of_life(store: Store) -> list[list[tuple[object, ...]]]:
    names = store.names()
    questions = {
        ENGINE: f"SELECT writer, beats FROM {ENGINE}",  # noqa: S608 - names of our own
        # One that reports anew changes its row; rows that only grow old are taken away.
        REPORTS: f"SELECT max(at) FROM {REPORTS}",  # noqa: S608 - names of our own
    }
    return [store.ask(question) for table, question in questions.items() if table in names]
