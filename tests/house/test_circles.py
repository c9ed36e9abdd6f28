"""No module needs itself by way of others, whether it imports them at once, later or for types alone."""

from __future__ import annotations

from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

from tests.house.modules import modules, own_imports


def graph() -> dict[str, set[str]]:
    needs: dict[str, set[str]] = {name: set() for name in modules()}
    for found in own_imports():
        # A package that hands out its own parts is no circle.
        is_own_door = found.importer.startswith(f"{found.module}.") or found.module.startswith(
            f"{found.importer}."
        )
        if found.module in needs and not is_own_door:
            needs[found.importer].add(found.module)
    return needs


def circle(needs: Mapping[str, set[str]]) -> list[str]:
    try:
        TopologicalSorter(needs).prepare()
    except CycleError as error:
        found: list[str] = error.args[1]
        return found
    return []


def test_no_circles_between_modules() -> None:
    found = circle(graph())
    way_out = "a circle; hand one of them what it needs of the other, or move what both need to a third"
    assert not found, f"{' → '.join(found)}: {way_out}"


def test_control_a_circle_is_seen() -> None:
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}
