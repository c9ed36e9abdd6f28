"""A name means one thing in the whole product, and says which."""

from __future__ import annotations

import ast
from collections import defaultdict

from tests.house.modules import listed, modules

# Django finds them by these names.
DEMANDED = {"Command"}
VAGUE = {"utils", "helpers", "common", "misc", "base", "services"}


def classes() -> dict[str, list[str]]:
    found: dict[str, list[str]] = defaultdict(list)
    for module in modules().values():
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and node.name not in DEMANDED:
                found[node.name].append(module.name)
    return found


def test_no_class_name_stands_for_two_things() -> None:
    found = [f"{name}: {', '.join(places)}" for name, places in classes().items() if len(places) > 1]
    assert not found, listed(found, "Rename one of the classes of each name, so that it says what differs:")


def test_no_two_modules_differ_by_the_order_of_words_alone() -> None:
    found: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for module in modules().values():
        stem = module.name.rpartition(".")[2]
        words = stem.split("_")
        if len(words) > 1:
            found[tuple(sorted(words))].add(stem)
    alike = [", ".join(sorted(names)) for names in found.values() if len(names) > 1]
    assert not alike, listed(alike, "Rename one of the modules of each line:")


def test_no_module_has_a_vague_name() -> None:
    vague = [name for name in modules() if name.rpartition(".")[2] in VAGUE]
    assert not vague, listed(vague, "Rename these modules after what is in them:")
