"""From a fault written into the text of a module to its row: what is replaced, by its syntax."""

from __future__ import annotations

import ast
from typing import Any, NamedTuple, TypeAlias

from .anchoring import DEFINITIONS, Place, bodies, places

# Nodes, or runs of statements.
Pair: TypeAlias = tuple[Any, Any]


class Change(NamedTuple):
    name: str
    """Of the function or class; empty for the module."""
    old: str
    new: str
    nth: int


class NoOneChange(Exception):
    """The two texts differ in nothing, or in more than one place."""


def written(place: Place) -> str:
    nodes = place if isinstance(place, list) else [place]
    return "\n".join(ast.unparse(node) for node in nodes)


def change(before: str, after: str) -> Change:
    """The smallest replacement that stands once in its function."""
    path = differing(ast.parse(before), ast.parse(after))
    if not path:
        raise NoOneChange
    scopes: list[ast.AST] = [path[0][0]]
    pairs: list[tuple[int, Pair]] = []
    for pair in path[1:]:
        node = pair[0]
        if isinstance(node, DEFINITIONS):
            scopes.append(node)
        elif isinstance(node, list) or all(is_whole(each) for each in pair):
            pairs.append((len(scopes), pair))
    inner = [pair for depth, pair in pairs if depth == len(scopes)]
    # A whole `if` says less than which of its conditions is meant.
    inner = [pair for pair in inner if not has_body(pair[0])] or inner
    if not inner:
        raise NoOneChange
    name = ".".join(scope.name for scope in scopes[1:])  # type: ignore[attr-defined]
    for old, new in reversed(inner):
        if len(places(scopes[-1], written(old), written(new))) == 1:
            return Change(name, written(old), written(new), 0)
    old, new = inner[-1]
    firsts = [first(place) for place in places(scopes[-1], written(old), written(new))]
    return Change(name, written(old), written(new), firsts.index(first(old)) + 1)


def has_body(place: Place) -> bool:
    return isinstance(place, list) and any(hasattr(node, "body") for node in place)


def is_whole(node: ast.AST) -> bool:
    """An expression that can stand alone."""
    return isinstance(node, ast.expr) and not isinstance(node, ast.Slice | ast.Starred)


def first(place: Place) -> ast.AST:
    return place[0] if isinstance(place, list) else place


def differing(old: ast.AST, new: ast.AST) -> list[Pair]:
    """From the outermost to the innermost pair of nodes, or of runs of statements, that differ."""
    if ast.dump(old) == ast.dump(new):
        return []
    here: list[Pair] = [(old, new)]
    if type(old) is not type(new):
        return here
    differences = [
        (one, other)
        for field in old._fields
        if dumped(one := getattr(old, field, None)) != dumped(other := getattr(new, field, None))
    ]
    if len(differences) != 1:
        return here
    one, other = differences[0]
    if isinstance(one, ast.AST) and isinstance(other, ast.AST):
        return here + differing(one, other)
    if isinstance(one, list) and isinstance(other, list) and one and isinstance(one[0], ast.AST):
        return here + differing_lists(one, other, is_body=any(one is body for body in bodies(old)))
    return here


def differing_lists(one: list[ast.AST], other: list[ast.AST], *, is_body: bool) -> list[Pair]:
    start = 0
    while start < min(len(one), len(other)) and dumped(one[start]) == dumped(other[start]):
        start += 1
    end = 0
    while end < min(len(one), len(other)) - start and dumped(one[-1 - end]) == dumped(other[-1 - end]):
        end += 1
    old, new = one[start : len(one) - end], other[start : len(other) - end]
    if len(old) == len(new) == 1:
        within = differing(old[0], new[0])
        return ([(old, new)] if is_body else []) + within
    if not is_body:
        return []
    if not old:
        start = max(start - 1, 0)
        old, new = one[start : start + 1], other[start : start + 1 + len(new)]
    return [(old, new)]


def dumped(value: object) -> object:
    if isinstance(value, list):
        return [dumped(each) for each in value]
    return ast.dump(value) if isinstance(value, ast.AST) else value
