"""No pattern of ours takes disproportionately longer for longer text, whatever the text."""

from __future__ import annotations

import ast
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.urls import URLPattern, URLResolver, get_resolver

from tests.reliability.conftest import Tell

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("config", "status", "news", "signals_feed", "market", "instruments", "accounts", "clients/python")
FUNCTIONS = {"compile", "match", "search", "fullmatch", "sub", "subn", "split", "findall", "finditer"}
SHORT, TIMES = 3_000, 4
# Four times the text takes four times as long where it is linear, sixteen times where it is quadratic.
MOST = 9.0
# Below this the clock says more about the machine than about the pattern.
NOTHING_S = 0.002


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


def patterns_in(path: Path) -> Iterator[str]:
    tree = ast.parse(path.read_text())
    known: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            known[node.targets[0].id] = constant(node.value, known) or ""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and node.args):
            continue
        function = node.func
        is_of_re = isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)
        if is_of_re and function.value.id == "re" and function.attr in FUNCTIONS:  # type: ignore[union-attr]
            yield constant(node.args[0], known) or ""


def of_urls(resolver: URLResolver) -> Iterator[str]:
    for each in resolver.url_patterns:
        if isinstance(each, URLResolver):
            yield from of_urls(each)
        elif isinstance(each, URLPattern) and hasattr(each.pattern, "regex"):
            yield each.pattern.regex.pattern


def collected() -> list[str]:
    files = [path for room in ROOMS for path in (ROOT / room).rglob("*.py")]
    ours = [pattern for path in files for pattern in patterns_in(path)]
    return sorted({*ours, *of_urls(get_resolver())} - {""})


def attacks(pattern: str, length: int) -> Iterator[str]:
    """Repetitions of what the pattern speaks of, ending in what it cannot take."""
    letters = {*re.findall(r"[A-Za-z0-9_]", pattern), *"a0 -./:=&\n\"'<"}
    words = {*re.findall(r"[A-Za-z0-9_/:=.-]{2,12}", pattern)}
    for unit in sorted(letters | words | {"a.", "a-", "://a:", " a", "0.", "<a "}):
        repeated = (unit * (length // len(unit) + 1))[:length]
        yield repeated + "\x00"
        yield repeated + "!"


def took_s(found: re.Pattern[str], text: str) -> float:
    best = float("inf")
    for _ in range(3):
        began = time.process_time()
        found.search(text)
        best = min(best, time.process_time() - began)
    return best


def worst_growth(pattern: str) -> float:
    """How many times longer four times the text takes; 1 where neither takes any time."""
    found = re.compile(pattern)
    worst = 1.0
    for short, long in zip(attacks(pattern, SHORT), attacks(pattern, SHORT * TIMES), strict=True):
        long_s = took_s(found, long)
        if long_s > NOTHING_S:
            worst = max(worst, long_s / max(took_s(found, short), 1e-6))
    return worst


@pytest.mark.row("71", "four times the text: less than nine times as long")
def test_every_pattern_of_ours_is_linear(tell: Tell) -> None:
    growth = {pattern: worst_growth(pattern) for pattern in collected()}

    steep = {pattern: round(times, 1) for pattern, times in growth.items() if times > MOST}
    tell(f"{len(growth)} patterns, the steepest {max(growth.values()):.1f} times")
    assert len(growth) > 60
    assert steep == {}


@pytest.mark.row("71", "a quadratic pattern is seen")
@pytest.mark.parametrize("pattern", [r"\s+$", r"a*b", r"(\w+)-(\w+)x"])
def test_quadratic_pattern_is_seen(pattern: str, tell: Tell) -> None:
    times = worst_growth(pattern)

    tell(f"{times:.1f} times")
    assert times > MOST
