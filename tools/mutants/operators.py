"""Draws faults from all modules of the product, the same for the same seed and the same code."""

from __future__ import annotations

import ast
import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import NamedTuple, TypeAlias

from . import catalogue
from .anchoring import DEFINITIONS, definitions, parsed, places
from .catalogue import Mutant
from .tree import ROOT, module_files, module_name

Made: TypeAlias = Iterator[tuple[str, str, str]]
"""The new syntax, what was done as a word for the id, and what is wrong in words."""

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], str]] = {
    ast.Lt: (ast.LtE, "boundary"),
    ast.LtE: (ast.Lt, "boundary"),
    ast.Gt: (ast.GtE, "boundary"),
    ast.GtE: (ast.Gt, "boundary"),
    ast.Eq: (ast.NotEq, "equality"),
    ast.NotEq: (ast.Eq, "equality"),
    ast.Is: (ast.IsNot, "identity"),
    ast.IsNot: (ast.Is, "identity"),
    ast.In: (ast.NotIn, "membership"),
    ast.NotIn: (ast.In, "membership"),
}
ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.FloorDiv: ast.Mult,
    ast.BitOr: ast.BitAnd,
}
NAMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
# What these do is no promise: logs, what staff read, what people read of an object. What is missing from
# `__init__` is missed at once.
SPOKEN = {"logger", "log", "logging", "print", "messages"}
UNPROMISED_NAMES = {"__repr__", "__str__", "__init__", "Meta"}
UNPROMISED_FILES = {"admin.py", "apps.py", "checks.py", "__main__.py"}
UNPROMISED_FOLDERS = {"commands", "docs", "documents", "social", "demo"}


FEW_ANSWERS = 0.2
LONGEST_SHOWN = 80


class Candidate(NamedTuple):
    node: ast.AST
    new: str
    word: str
    wrong: str


def shown(node: ast.AST) -> str:
    text = " ".join(ast.unparse(node).split())
    return f"`{text}`" if len(text) <= LONGEST_SHOWN else f"`{text[:LONGEST_SHOWN]}…`"


def compare(node: ast.AST) -> Made:
    if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in COMPARISONS:
        other, word = COMPARISONS[type(node.ops[0])]
        changed = deepcopy(node)
        changed.ops = [other()]
        yield ast.unparse(changed), word, f"{shown(node)} has become {shown(changed)}"


def boolean(node: ast.AST) -> Made:
    if isinstance(node, ast.BoolOp):
        changed = deepcopy(node)
        changed.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        yield ast.unparse(changed), "junction", f"{shown(node)} joins the other way"
        for place in range(len(node.values)):
            fewer = [*node.values[:place], *node.values[place + 1 :]]
            left = fewer[0] if len(fewer) == 1 else ast.BoolOp(node.op, fewer)
            yield ast.unparse(left), "condition", f"{shown(node.values[place])} is left out"
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield ast.unparse(node.operand), "negation", f"{shown(node)} is the opposite"


def arithmetic(node: ast.AST) -> Made:
    texts = (ast.JoinedStr, ast.Constant)
    if isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC:
        if any(isinstance(side, texts) and not is_number(side) for side in (node.left, node.right)):
            return
        changed = deepcopy(node)
        changed.op = ARITHMETIC[type(node.op)]()
        yield ast.unparse(changed), "arithmetic", f"{shown(node)} has become {shown(changed)}"


def is_number(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and type(node.value) in (int, float)


def constant(node: ast.AST) -> Made:
    if isinstance(node, ast.Constant):
        if node.value is True or node.value is False:
            yield str(not node.value), "flag", f"`{node.value}` has become `{not node.value}`"
        elif type(node.value) is int:
            for value in (node.value + 1, node.value - 1):
                yield str(value), "number", f"{node.value} has become {value}"


def called(node: ast.AST) -> Made:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NAMES:
        changed = deepcopy(node)
        changed.func = ast.Name(NAMES[node.func.id])
        yield ast.unparse(changed), NAMES[node.func.id], f"{shown(node)} is {NAMES[node.func.id]}"


def branch(node: ast.AST) -> Made:
    if isinstance(node, ast.If | ast.IfExp | ast.While) and not isinstance(node.test, ast.Constant):
        for value in (True, False):
            if not (isinstance(node, ast.While) and value):
                yield str(value), "branch", f"the condition {shown(node.test)} is always {value}"


def statement(node: ast.AST) -> Made:
    if isinstance(node, ast.Return) and node.value is not None and not is_nothing(node.value):
        yield "return None", "answer", f"{shown(node)} returns nothing"
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call | ast.Await):
        yield "", "dropped", f"{shown(node)} is missing"
    if isinstance(node, ast.AugAssign | ast.Delete | ast.Raise):
        yield "", "dropped", f"{shown(node)} is missing"
    if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Attribute | ast.Subscript):
        yield "", "dropped", f"{shown(node)} is missing"
    if isinstance(node, ast.Break | ast.Continue):
        yield "", "dropped", f"{shown(node)} is missing"


def is_nothing(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value in (None, False)


OPERATORS: Sequence[Callable[[ast.AST], Made]] = (
    *(compare, boolean, arithmetic, constant, called, branch, statement),
)


def is_spoken(node: ast.AST) -> bool:
    """What is said to people, in logs and in exceptions."""
    if not isinstance(node, ast.Call):
        return False
    names = {each.id for each in ast.walk(node.func) if isinstance(each, ast.Name)}
    return bool(names & SPOKEN) or "left_out" in ast.unparse(node)


def functions(path: Path) -> Iterator[tuple[str, ast.AST]]:
    """Those that something is promised of, and whose name says which is meant."""
    named = list(definitions(parsed(ROOT / path)))
    often = Counter(name for name, _ in named)
    for name, node in named:
        is_function = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and often[name] == 1
        if is_function and not UNPROMISED_NAMES & set(name.split(".")):
            yield name, node


def candidates(function: ast.AST) -> Iterator[Candidate]:
    """Not those of the functions within it."""
    for child in getattr(function, "body", []):
        yield from _look(child)


def _look(node: ast.AST) -> Iterator[Candidate]:
    spoken = node.value if isinstance(node, ast.Expr) else node
    if isinstance(node, (*DEFINITIONS, ast.JoinedStr)) or is_spoken(spoken):
        return
    for operator in OPERATORS:
        for new, word, wrong in operator(node):
            yield Candidate(node.test if operator is branch else node, new, word, wrong)  # type: ignore[attr-defined]
    for child in ast.iter_child_nodes(node):
        yield from _look(child)


def is_promised(path: Path) -> bool:
    return path.name not in UNPROMISED_FILES and not UNPROMISED_FOLDERS & set(path.parts)


def draw(number: int, seed: int) -> int:
    """Write so many more into the catalogue: of any function with equal chances, then of any operator that
    can do something there."""
    chance = random.Random(seed)  # noqa: S311
    every = [
        (path, name, function)
        for path in module_files()
        if is_promised(path)
        for name, function in functions(path)
    ]
    chance.shuffle(every)
    known = catalogue.all_mutants()
    taken = {mutant.at for mutant in known if mutant.id.endswith(f"_{seed}")}
    ids = {mutant.id for mutant in known}
    drawn = 0
    for path, name, function in every:
        if drawn == number:
            break
        at = f"{module_name(path)}:{name}"
        by_word: dict[str, list[Candidate]] = defaultdict(list)
        for candidate in candidates(function):
            by_word[candidate.word].append(candidate)
        if not by_word or at in taken:
            continue
        # An answer that is missing is noticed easily, and there is one in almost every function.
        if by_word.keys() != {"answer"}:
            by_word.pop("answer", None)
        elif chance.random() > FEW_ANSWERS:
            continue
        found = chance.choice(by_word[chance.choice(sorted(by_word))])
        mutant = as_mutant(path, at, function, found, seed)
        if mutant is not None and mutant.id not in ids:
            catalogue.add(mutant, catalogue.DRAWN)
            ids.add(mutant.id)
            drawn += 1
    return 0


def as_mutant(path: Path, at: str, function: ast.AST, found: Candidate, seed: int) -> Mutant | None:
    old = ast.unparse(found.node)
    firsts = [place[0] if isinstance(place, list) else place for place in places(function, old, found.new)]
    nth = next((place for place, node in enumerate(firsts, 1) if node is found.node), 0)
    if not nth:
        return None
    room = room_of(path)
    name = at.partition(":")[2].replace(".", "_").replace("__", "_").strip("_").lower()
    return Mutant(
        f"{room}.{name}_{found.word}_{seed}",
        room,
        at,
        old,
        found.new,
        f"{found.wrong}.",
        nth if len(firsts) > 1 else 0,
    )


ROOMS_WITHIN = {"market/streams": "streams", "signals_feed/ledger": "ledger"}


def room_of(path: Path) -> str:
    if "back_office" in path.parts:
        return "back_office"
    return ROOMS_WITHIN.get("/".join(path.parts[:2])) or path.parts[0].removesuffix("_feed")
