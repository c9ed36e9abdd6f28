"""Which tests a fault is shown to: those that execute its line, fastest first."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from .anchoring import DEFINITIONS, Anchor, parsed
from .seen import Seen, Test
from .tree import ROOT

# So many times as long may a file take that stands one folder nearer.
NEARER = 4


@cache
def parents(path: Path) -> dict[ast.AST, ast.AST]:
    tree = parsed(ROOT / path)
    return {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}


def lines_to_reach(anchor: Anchor) -> frozenset[int] | None:
    """Those of the statement; None where it runs as the module is imported."""
    place = anchor.place
    if isinstance(place, ast.expr):
        node: ast.AST = place
        while not isinstance(node, ast.stmt | ast.match_case | ast.ExceptHandler):
            node = parents(anchor.path)[node]
        nodes = [node]
    else:
        nodes = list(place)
    if not within_function(anchor, nodes[0]):
        return None
    return frozenset(line for node in nodes for line in own_lines(node))


def within_function(anchor: Anchor, node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return True
    while node in parents(anchor.path):
        node = parents(anchor.path)[node]
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            return True
        if isinstance(node, ast.ClassDef):
            return False
    return False


def own_lines(node: ast.AST) -> range:
    """A statement that contains others has its head; what stands in the head of a function is its body's."""
    body = getattr(node, "body", None)
    if isinstance(node, DEFINITIONS):
        return range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1)
    if isinstance(body, list) and body:
        if isinstance(node, ast.match_case):
            return range(node.pattern.lineno, body[0].lineno + 1)
        return range(node.lineno, max(node.lineno + 1, body[0].lineno))  # type: ignore[attr-defined]
    return range(node.lineno, (node.end_lineno or node.lineno) + 1)  # type: ignore[attr-defined]


def nearness(file: str, module: Path) -> int:
    """How many folders a file of tests shares with a module, and whether it is called like it."""
    own, other = Path(file).with_suffix("").parts[1:], module.with_suffix("").parts
    shared = 0
    while shared < min(len(own), len(other)) - 1 and own[shared] == other[shared]:
        shared += 1
    return shared + (own[-1].removeprefix("test_") in other[-1])


class Choosing:
    def __init__(self, seen: Seen) -> None:
        self._seen = seen
        self._tests = seen.tests()
        self._by_file: dict[str, list[Test]] = defaultdict(list)
        for test in self._tests.values():
            self._by_file[test.file].append(test)

    def tests(self, anchor: Anchor, levels: Iterable[str]) -> list[Test]:
        """Fast ones first, and those that stand near to the module, file by file."""
        reached = self._seen.reaching(str(anchor.path), lines_to_reach(anchor))
        found = {self._tests[each] for each in reached if each in self._tests}
        found |= {test for each in reached if "::" not in each for test in self._by_file[each]}
        allowed = set(levels)
        files: dict[str, list[Test]] = defaultdict(list)
        for test in found:
            if test.passed and test.level in allowed:
                files[test.file].append(test)
        order = sorted(
            files,
            key=lambda file: (
                sum(test.seconds for test in files[file]) / NEARER ** nearness(file, anchor.path)
            ),
        )
        return [test for file in order for test in sorted(files[file], key=lambda test: test.place)]
