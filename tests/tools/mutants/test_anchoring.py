from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.mutants import catalogue
from tools.mutants.anchoring import Lost, find, planted
from tools.mutants.catalogue import Mutant
from tools.mutants.difference import NoOneChange, change

WINDOW = """
class Window:
    def count(self, used, limit):
        admitted = used < limit
        if admitted:
            self.note(used)
        return admitted
"""
LIMIT = Mutant("market.one_more", "market", "market.window:Window.count", "used < limit", "used <= limit", "")
UNNOTED = LIMIT._replace(old="self.note(used)", new="")


def tree(root: Path, **modules: str) -> Path:
    for name, text in modules.items():
        path = root / "market" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return root


def fault(mutant: Mutant, root: Path) -> str:
    anchor = find(mutant, root)
    return planted((root / anchor.path).read_text(), anchor.place, mutant.new)


@pytest.mark.parametrize(
    ("mutant", "expected"),
    [
        (LIMIT, WINDOW.replace("used < limit", "(used <= limit)")),
        (UNNOTED, WINDOW.replace("self.note(used)", "pass")),
        (
            LIMIT._replace(old="admitted", new="True", nth=2),
            WINDOW.replace("return admitted", "return (True)"),
        ),
    ],
)
def test_only_what_is_named_is_replaced(tmp_path: Path, mutant: Mutant, expected: str) -> None:
    assert fault(mutant, tree(tmp_path, window=WINDOW)) == expected


def test_layout_and_comments_do_not_matter(tmp_path: Path) -> None:
    text = WINDOW.replace("used < limit", "(\n            used  # so far\n            < limit\n        )")
    assert "used <= limit" in fault(LIMIT, tree(tmp_path, window=text))


def test_what_moved_is_found(tmp_path: Path) -> None:
    moved = tree(tmp_path, limits=WINDOW.replace("Window", "Slots"), window="")
    assert find(LIMIT, moved).at == "market.limits:Slots.count"


@pytest.mark.parametrize(
    "modules",
    [
        {"window": WINDOW.replace("<", ">")},
        {"window": WINDOW.replace("return admitted", "return used < limit")},
        {"limits": WINDOW, "slots": WINDOW},
    ],
    ids=["changed", "twice in its function", "in two modules"],
)
def test_what_has_no_one_place_is_lost(tmp_path: Path, modules: dict[str, str]) -> None:
    with pytest.raises(Lost):
        find(LIMIT, tree(tmp_path, **modules))


def test_the_smallest_change_becomes_a_row() -> None:
    for old, new, row in (
        ("note(used)", "note(limit)", ("self.note(used)", "self.note(limit)", 0)),
        ("if admitted", "if used", ("admitted", "used", 1)),
    ):
        assert change(WINDOW, WINDOW.replace(old, new)) == ("Window.count", *row)
    for after in (WINDOW, WINDOW.replace("used", "taken")):
        with pytest.raises(NoOneChange):
            change(WINDOW, after)


def test_catalogue_is_read_as_it_was_written(tmp_path: Path) -> None:
    rows = [
        LIMIT._replace(old='say("it\'s", """so\n""")', nth=2),
        LIMIT._replace(id="streams.a", room="streams", old="b'\\n'"),
        UNNOTED._replace(id="market.unnoted"),
    ]
    path = tmp_path / "rows.toml"
    for row in rows:
        catalogue.add(row, path)
    assert sorted(catalogue.read(path)) == sorted(rows)


def test_ids_are_given_once_and_what_is_accepted_exists() -> None:
    ids = [mutant.id for mutant in catalogue.all_mutants()]
    assert len(set(ids)) == len(ids)
    assert set(catalogue.accepted()) <= set(ids)
    assert len(catalogue.accepted()) <= 0.03 * len(ids)


def test_every_fault_is_python() -> None:
    for mutant in catalogue.all_mutants():
        ast.parse(mutant.old)
        ast.parse(mutant.new)
