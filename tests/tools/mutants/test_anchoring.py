from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tools.mutants import catalogue
from tools.mutants.anchoring import Lost, find, places, planted
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
        (
            LIMIT._replace(old="if admitted:\n    self.note(used)\nreturn admitted", new="return None"),
            WINDOW.partition("        if")[0] + "        return None\n",
        ),
    ],
    ids=["an expression", "a statement", "the second of two", "several statements"],
)
def test_only_what_is_named_is_replaced(tmp_path: Path, mutant: Mutant, expected: str) -> None:
    assert fault(mutant, tree(tmp_path, window=WINDOW)) == expected


def test_layout_and_comments_do_not_matter(tmp_path: Path) -> None:
    text = WINDOW.replace("used < limit", "(\n            used  # so far\n            < limit\n        )")
    assert "used <= limit" in fault(LIMIT, tree(tmp_path, window=text))


@pytest.mark.parametrize(
    ("text", "at"),
    [
        (WINDOW, "market.limits:Window.count"),
        (WINDOW.replace("Window", "Slots"), "market.limits:Slots.count"),
        (WINDOW.replace("    def", "    @property\n    def"), "market.limits:Window.count"),
    ],
    ids=["another module", "another class", "decorated"],
)
def test_what_moved_is_found(tmp_path: Path, text: str, at: str) -> None:
    assert find(LIMIT, tree(tmp_path, limits=text, window="")).at == at


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


@pytest.mark.parametrize(
    ("old", "new", "row"),
    [
        ("used < limit", "used <= limit", ("used < limit", "used <= limit", 0)),
        ("note(used)", "note(limit)", ("self.note(used)", "self.note(limit)", 0)),
        ("self.note(used)", "pass", ("self.note(used)", "pass", 0)),
        ("self.note(used)", "self.used = used", ("self.note(used)", "self.used = used", 0)),
        ("return admitted", "return used", ("return admitted", "return used", 0)),
        ("if admitted", "if used", ("admitted", "used", 1)),
    ],
)
def test_the_smallest_change_becomes_a_row(old: str, new: str, row: tuple[str, str, int]) -> None:
    found = change(WINDOW, WINDOW.replace(old, new))
    assert found == ("Window.count", *row)
    place = places(ast.parse(WINDOW), found.old, found.new)[max(0, found.nth - 1)]
    assert ast.dump(ast.parse(planted(WINDOW, place, found.new))) == ast.dump(
        ast.parse(WINDOW.replace(old, new))
    )


@pytest.mark.parametrize("after", [WINDOW, WINDOW.replace("used", "taken")], ids=["none", "several"])
def test_no_change_and_several_are_no_row(after: str) -> None:
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
