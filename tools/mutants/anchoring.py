"""Where a fault is planted: module, qualified name, and the syntax that is replaced there. So neither a new
layout of the text nor a new place of the module loses it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple, TypeAlias

from .catalogue import Mutant
from .tree import ROOT, paths_by_module

Definition: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
Place: TypeAlias = list[ast.stmt] | ast.expr


class Lost(Exception):
    """A fault has no place any more, or more than one."""


class Anchor(NamedTuple):
    """A place in a module; `at` is where it stands by now."""

    path: Path
    at: str
    place: Place

    @property
    def lines(self) -> frozenset[int]:
        nodes = self.place if isinstance(self.place, list) else [self.place]
        return frozenset(
            line for node in nodes for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
        )


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes())


def definitions(tree: ast.AST, within: str = "") -> Iterator[tuple[str, Definition]]:
    """All functions and classes with their qualified names."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, DEFINITIONS):
            name = f"{within}.{child.name}" if within else child.name
            yield name, child
            yield from definitions(child, name)
        elif not isinstance(child, ast.expr):
            yield from definitions(child, within)


def scopes(tree: ast.Module, name: str) -> list[ast.AST]:
    """Those of this qualified name, such as the getter and the setter of a property; the module has none."""
    return [node for each, node in definitions(tree) if each == name] if name else [tree]


def wanted(old: str, new: str) -> ast.expr | list[ast.stmt]:
    """An expression wherever it stands, if another one takes its place; else whole statements."""
    body = ast.parse(old).body
    first = body[0]
    return first.value if len(body) == 1 and isinstance(first, ast.Expr) and is_expression(new) else body


def is_expression(text: str) -> bool:
    body = ast.parse(text).body
    return len(body) == 1 and isinstance(body[0], ast.Expr)


def same(one: ast.AST, other: ast.AST) -> bool:
    return ast.dump(one) == ast.dump(other)


def children(node: ast.AST) -> Iterator[ast.AST]:
    """Without what stands in an f-string: before Python 3.12 nobody says where."""
    if not isinstance(node, ast.JoinedStr):
        yield from ast.iter_child_nodes(node)


def bodies(node: ast.AST) -> Iterator[list[ast.stmt]]:
    for field in ("body", "orelse", "finalbody"):
        body = getattr(node, field, None)
        if isinstance(body, list) and body:
            yield body


def places(scope: ast.AST, old: str, new: str) -> list[Place]:
    """Everywhere in a scope where this stands, in the order of the text."""
    sought = wanted(old, new)
    found: list[Place] = []

    def look(node: ast.AST) -> None:
        if isinstance(sought, list):
            for body in bodies(node):
                for start in range(len(body) - len(sought) + 1):
                    part = body[start : start + len(sought)]
                    if all(same(*pair) for pair in zip(part, sought, strict=True)):
                        found.append(part)
        elif isinstance(node, ast.expr) and type(node) is type(sought) and same(node, sought):
            found.append(node)
        for child in children(node):
            look(child)

    look(scope)
    return found


def place_in(scope: ast.AST, mutant: Mutant) -> Place | None:
    found = places(scope, mutant.old, mutant.new)
    if mutant.nth:
        return found[mutant.nth - 1] if len(found) >= mutant.nth else None
    return found[0] if len(found) == 1 else None


def find(mutant: Mutant, root: Path = ROOT) -> Anchor:
    """Where the catalogue says; or wherever in the product that qualified name has that syntax now; or else a
    function of the same name. More than one place is none."""
    module, _, name = mutant.at.partition(":")
    paths = paths_by_module(root)
    if module in paths and (found := list(anchors(root, module, {name}, mutant))):
        return only(found, mutant)
    last = name.rpartition(".")[2]
    for by_last_name in (False, True):
        found = [
            anchor
            for each in paths
            for anchor in anchors(root, each, names_like(root, each, name, last, by_last_name), mutant)
        ]
        if found:
            return only(found, mutant)
    raise Lost(f"{mutant.id}: nothing in {mutant.at} is `{mutant.old}`")


def names_like(root: Path, module: str, name: str, last: str, by_last_name: bool) -> set[str]:
    if not name:
        return set() if by_last_name else {""}
    every = {each for each, _ in definitions(parsed(root / paths_by_module(root)[module]))}
    return {each for each in every if each == name or (by_last_name and each.rpartition(".")[2] == last)}


def anchors(root: Path, module: str, names: set[str], mutant: Mutant) -> Iterator[Anchor]:
    path = paths_by_module(root)[module]
    for name in sorted(names):
        for scope in scopes(parsed(root / path), name):
            if place := place_in(scope, mutant):
                yield Anchor(path, f"{module}:{name}", place)


def only(found: list[Anchor], mutant: Mutant) -> Anchor:
    if len(found) > 1:
        raise Lost(f"{mutant.id}: in more than one place: {', '.join(each.at for each in found)}")
    return found[0]


def planted(source: str, place: Place, new: str) -> str:
    """The text of the module with the fault; all other lines keep their numbers where that can be."""
    lines = source.encode().splitlines(keepends=True)
    first, last = (place[0], place[-1]) if isinstance(place, list) else (place, place)
    begin = sum(map(len, lines[: first.lineno - 1])) + first.col_offset
    end = sum(map(len, lines[: (last.end_lineno or 0) - 1])) + (last.end_col_offset or 0)
    if isinstance(place, list):
        indent = "\n" + " " * first.col_offset
        text = indent.join(ast.unparse(ast.parse(new or "pass")).splitlines())
    else:
        text = f"({new})"
    whole = b"".join(lines)
    return (whole[:begin] + text.encode() + whole[end:]).decode()
