"""From recorded calls to three figures: how many of our modules a walk passes, how often it moves from one
to another, and how many of these moves return to a module that it had left before.

- Only calls count, in the order in which all threads and tasks make them; a coroutine that goes on after
  waiting is no call.
- A walk lasts from what sets it off until the client has what it waits for and the service is quiet again.
- What the idle service does as well, known by the whole stack of the call, is left out; so is what does not
  happen each time. Of several times, the one with the fewest moves counts.
- Left out as well are the rooms that every request passes, whatever it asks for: `PASSED_BY_ALL`.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from .tracing import Call

# The server and what puts the apps together.
PASSED_BY_ALL = frozenset({"config", "pages", "serving"})
Run = list[Call]
"""What was called while a scenario was performed once."""


class Figures(NamedTuple):
    modules: int
    moves: int
    returns: int


def walk(runs: Sequence[Run], idle: Collection[tuple[str, ...]]) -> list[str]:
    """The functions that the walk calls, each as `module:function`."""
    each_time = set.intersection(*({call.stack for call in run} for run in runs)).difference(idle)

    def counts(call: Call) -> bool:
        return call.stack in each_time and call.stack[-1].partition(".")[0] not in PASSED_BY_ALL

    walks = ([call.stack[-1] for call in run if counts(call)] for run in runs)
    return min(walks, key=lambda names: figures(names).moves)


def figures(names: Iterable[str]) -> Figures:
    modules: set[str] = set()
    moves = returns = 0
    here = ""
    for module in map(module_of, names):
        if module != here and here:
            moves += 1
            returns += module in modules
        modules.add(module)
        here = module
    return Figures(len(modules), moves, returns)


def module_of(name: str) -> str:
    return name.partition(":")[0]
