"""No pattern of ours takes disproportionately longer for longer text, whatever the text."""

from __future__ import annotations

import ast
import re
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from tests.reliability.fixtures import Tell

ROOT = Path(__file__).resolve().parents[4]
ROOMS = (
    "config",
    "status",
    "news",
    "signals_feed",
    "transparency",
    "market",
    "instruments",
    "accounts",
    "clients/python",
)
ANCHORED = {"match", "fullmatch"}
WAYS = ANCHORED | {"compile", "search", "sub", "subn", "split", "findall", "finditer"}
# A pattern, and how it is used.
Used = tuple[str, str]
SHORT, TIMES = 1_500, 4
# A quiet core takes a tenth of it.
LONG, LONGEST_MS = 50 * 1024, 100
# Four times the text takes four times as long where it is linear, sixteen times where it is quadratic.
MOST = 9.0
# Below this the clock says more about the machine than about the pattern.
NOTHING_S = 0.001
TURNS = 12


def constant(node: ast.expr, known: dict[str, str]) -> str | None:
    """The text of an expression of constants, as far as it is one."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str | bytes):
        return node.value if isinstance(node.value, str) else node.value.decode("latin-1")
    if isinstance(node, ast.Name):
        return known.get(node.id)
    if isinstance(node, ast.JoinedStr):
        parts = [constant(v.value if isinstance(v, ast.FormattedValue) else v, known) for v in node.values]
        return "".join(part or "x" for part in parts)
    if isinstance(node, ast.BinOp):
        left, right = constant(node.left, known), constant(node.right, known)
        return None if left is None or right is None else left + right
    return None


def patterns_in(path: Path, ways: dict[str, set[str]]) -> Iterator[Used]:
    """And the ways in which each is used."""
    tree = ast.parse(path.read_text())
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            known[node.targets[0].id] = constant(node.value, known) or ""
    names = {
        id(node.value): node.targets[0].id
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and node.args and called(node)[0] == "re"):
            continue
        text, way = constant(node.args[0], known), called(node)[1]
        if text and way in WAYS:
            yield from ((text, each) for each in sorted(ways.get(names.get(id(node), ""), {way})))


def called(call: ast.Call) -> tuple[str, str]:
    """`NAME.way(…)`: both."""
    function = call.func
    if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
        return function.value.id, function.attr
    return "", ""


def ways_of_names(files: list[Path]) -> dict[str, set[str]]:
    """How what is compiled under a name is used, wherever that is."""
    ways = defaultdict[str, set[str]](set)
    for path in files:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and called(node)[1] in WAYS:
                ways[called(node)[0]].add(called(node)[1])
    return ways


def of_urls(resolver: URLResolver) -> Iterator[Used]:
    for each in resolver.url_patterns:
        if isinstance(each, URLResolver):
            yield from of_urls(each)
        elif isinstance(each, URLPattern) and hasattr(each.pattern, "regex"):
            yield each.pattern.regex.pattern, "search"


def collected() -> list[Used]:
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    ways = ways_of_names(files)
    ours = [used for path in files for used in patterns_in(path, ways)]
    return sorted({*ours, *of_urls(get_resolver())})


def attacks(pattern: str, length: int) -> Iterator[str]:
    """Repetitions of what the pattern speaks of, ending in what it cannot take."""
    letters = {*re.findall(r"[A-Za-z0-9_]", pattern), *"a0 -./:=&\n\"'<"}
    words = {*re.findall(r"[A-Za-z0-9_/:=.-]{2,12}", pattern)}
    for unit in sorted(letters | words | {"a.", "a-", "://a:", " a", "0.", "<a "}):
        repeated = (unit * (length // len(unit) + 1))[:length]
        yield f"{repeated}\x00"


def took_s(look: Callable[[str], object], text: str, times: int = 1) -> float:
    best = float("inf")
    for _ in range(times):
        began = time.process_time()
        look(text)
        best = min(best, time.process_time() - began)
    return best


def look_of(pattern: str, way: str) -> Callable[[str], object]:
    compiled = re.compile(pattern)
    return compiled.fullmatch if way == "fullmatch" else compiled.match if way == "match" else compiled.search


def growth_of(look: Callable[[str], object], short: str, long: str) -> float:
    """In turn, so that a core that is shared for a moment slows not only one of them."""
    turns = [(took_s(look, short), took_s(look, long)) for _ in range(TURNS)]
    return min(long_s for _, long_s in turns) / max(min(short_s for short_s, _ in turns), 1e-6)


def worst_growth(pattern: str, way: str = "search") -> float:
    """How many times longer four times the text takes; 1 where neither takes any time."""
    look, worst = look_of(pattern, way), 1.0
    for short, long in zip(attacks(pattern, SHORT), attacks(pattern, SHORT * TIMES), strict=True):
        if took_s(look, long) > NOTHING_S:
            worst = max(worst, growth_of(look, short, long))
        if worst > MOST:
            break
    return worst


def longest_s(pattern: str, way: str) -> float:
    """What 50 KiB take, of the text that takes longest where it is shorter."""
    look = look_of(pattern, way)
    took = [took_s(look, text) for text in attacks(pattern, SHORT * TIMES)]
    worst = list(attacks(pattern, LONG))[took.index(max(took))]
    return took_s(look, worst, 3)


@pytest.mark.row(
    "71", "four times the text takes less than nine times as long; 50 KiB take at most 100 ms of a core"
)
def test_every_regular_expression_runs_in_linear_time(tell: Tell) -> None:
    growth = {used: worst_growth(*used) for used in collected()}
    longest_ms = max(longest_s(*used) for used in growth) * 1000

    steep = {used: round(times, 1) for used, times in growth.items() if times > MOST}
    tell(f"{len(growth)} patterns, the steepest takes {max(growth.values()):.1f} times as long")
    tell(f"50 KiB in {longest_ms:.0f} ms")
    assert len(growth) > 60
    assert steep == {}
    assert longest_ms <= LONGEST_MS


@pytest.mark.row("71", "a quadratic pattern is seen")
@pytest.mark.parametrize("pattern", [r"\s+$", r"a*b", r"(\w+)-(\w+)x"])
def test_control_a_quadratic_pattern_is_noticed(pattern: str, tell: Tell) -> None:
    times = worst_growth(pattern)

    tell(f"takes {times:.1f} times as long")
    assert times > MOST
