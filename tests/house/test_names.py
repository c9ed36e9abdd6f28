"""Names of modules say what is in them, and no two are the same words in another order."""

from __future__ import annotations

from collections import defaultdict

from tests.house.modules import modules

VAGUE = {"utils", "helpers", "common", "misc", "base", "services"}


def test_no_two_modules_differ_by_the_order_of_words_alone() -> None:
    found: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for module in modules().values():
        stem = module.name.rpartition(".")[2]
        words = stem.split("_")
        if len(words) > 1:
            found[tuple(sorted(words))].add(stem)
    assert [names for names in found.values() if len(names) > 1] == []


def test_no_module_has_a_vague_name() -> None:
    assert [name for name in modules() if name.rpartition(".")[2] in VAGUE] == []
