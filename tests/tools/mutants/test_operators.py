from __future__ import annotations

import ast

import pytest

from tools.mutants.operators import candidates


def made(body: str) -> set[tuple[str, str]]:
    (function,) = ast.parse(f"def function():\n    {body}").body
    return {(ast.unparse(found.node), found.new) for found in candidates(function)}


@pytest.mark.parametrize(
    ("body", "old", "new"),
    [
        ("return a < b", "a < b", "a <= b"),
        ("return a >= b", "a >= b", "a > b"),
        ("return a == b", "a == b", "a != b"),
        ("return a in b", "a in b", "a not in b"),
        ("return a is None", "a is None", "a is not None"),
        ("return a and b", "a and b", "a or b"),
        ("return a and b", "a and b", "b"),
        ("return not a", "not a", "a"),
        ("return a - b", "a - b", "a + b"),
        ("return min(a, b)", "min(a, b)", "max(a, b)"),
        ("return a[1]", "1", "2"),
        ("return a[1]", "1", "0"),
        ("return f(a=True)", "True", "False"),
        ("return a", "return a", "return None"),
        ("if a: b()", "a", "False"),
        ("if a: b()", "b()", ""),
        ("self.a = b", "self.a = b", ""),
        ("await a()", "await a()", ""),
        ("a += 1", "a += 1", ""),
        ("raise A", "raise A", ""),
        ("for a in b: break", "break", ""),
    ],
)
def test_an_operator_makes(body: str, old: str, new: str) -> None:
    assert (old, new) in made(body)


@pytest.mark.parametrize(
    "body",
    [
        "logger.warning('%d of %d', 1, 2)",
        "a = f'{b + 1}'",
        "a = 'b' + c",
        "def inner(): return a < b",
        "'''A docstring.'''",
    ],
)
def test_nothing_is_made_of_what_is_no_promise(body: str) -> None:
    assert not made(body)
