from __future__ import annotations

from pathlib import Path

import pytest

from .__main__ import too_long
from .counting import Figures, figures, walk
from .limits import LIMITS
from .tracing import Call


def calls(*names: str, under: str = "root:main") -> list[Call]:
    return [Call(at_ns, (under, name)) for at_ns, name in enumerate(names)]


def test_architecture_shows_the_limits() -> None:
    page = (Path(__file__).parents[2] / "docs/architecture.md").read_text()
    rows = [f"| {name} | {most.modules} | {most.moves} | {most.returns} |" for name, most in LIMITS.items()]
    assert [row for row in rows if row not in page.splitlines()] == []


def test_a_move_is_a_change_of_module() -> None:
    assert figures(["a:f", "a:g", "b:f"]) == Figures(modules=2, moves=1, returns=0)


def test_a_return_is_a_move_into_a_module_that_was_left() -> None:
    assert figures(["a:f", "b:f", "a:f", "c:f", "b:g"]) == Figures(modules=3, moves=4, returns=2)


def test_nothing_is_no_walk() -> None:
    assert figures([]) == Figures(0, 0, 0)


def test_what_the_idle_service_does_as_well_is_left_out() -> None:
    runs = [calls("a:f", "b:f")]
    assert walk(runs, {("root:main", "b:f")}, ()) == ["a:f"]


def test_the_same_function_called_from_elsewhere_counts() -> None:
    runs = [calls("a:f", "b:f")]
    assert walk(runs, {("timer:look", "b:f")}, ()) == ["a:f", "b:f"]


def test_what_does_not_happen_each_time_is_left_out() -> None:
    assert walk([calls("a:f", "b:f"), calls("a:f", "c:f")], (), ()) == ["a:f"]


def test_the_time_with_the_fewest_moves_tells() -> None:
    assert walk([calls("a:f", "b:f", "a:f"), calls("b:f", "a:f", "a:f")], (), ()) == ["b:f", "a:f", "a:f"]


def test_rooms_that_everything_passes_are_left_out() -> None:
    assert walk([calls("config.asgi:application", "a.b:f")], (), {"config"}) == ["a.b:f"]


@pytest.mark.parametrize("name", LIMITS)
def test_walk_that_is_too_long_tells_where_its_limit_stands(name: str) -> None:
    limit = LIMITS[name]
    assert too_long(name, limit) == ""
    told = too_long(name, limit._replace(moves=limit.moves + 1))
    assert f"{limit.moves + 1} moves" in told
    for way_out in ("`-v`", "tests/walks/limits.py", "docs/architecture.md"):
        assert way_out in told
