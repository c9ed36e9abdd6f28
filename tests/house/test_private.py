"""Tests hold to what our code promises: no name with a leading underscore, but one's own."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from tests.house.modules import ROOT, listed

OWN = {"self", "cls"}
# Named so, but documented for everybody: of tuples, of Django's models, of the operating system.
PUBLIC = {"_replace", "_asdict", "_fields", "_meta", "_default_manager", "_exit"}
# Of libraries that offer nothing else, and why a test needs it.
NEEDED = {
    "_asyncioEventloop": "Twisted's reactor: daphne has to run on the loop of the test",
    "_AUTHENTICATION_METHODS_USER_SESSION_KEY": "allauth's: a session that began with a second factor",
    "_commit": "Django's connection: a process dies just before or after it",
    "_dont_enforce_csrf_checks": "Django's test client sets it, too: a view is asked without the client",
    "_fixture_teardown": "Django's TransactionTestCase: its flush takes what every installation has",
    "_get_test_db_name": "Django's name of the database that is copied instead of migrated",
    "_messages": "Django's messages of a request",
    "_raw_delete": "Django's delete without its cascade in Python: the trigger has to refuse it",
    "_registry": "Django's admin: every page of it, also those that are yet to be written",
    "_TrustedHosts": "uvicorn's rule for proxies, with which ours has to agree",
}


def private_names(tree: ast.AST) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id=owner)) if owner in OWN:
                continue
            case ast.Attribute(value=ast.Call(func=ast.Name(id="super"))):
                continue
            case ast.Attribute(attr=name):
                names = [name]
            case ast.ImportFrom(names=aliases):
                names = [alias.name for alias in aliases]
            case _:
                continue
        for name in names:
            if name.startswith("_") and not name.startswith("__") and name not in PUBLIC | NEEDED.keys():
                yield name, node.lineno


def test_tests_use_public_names_alone() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in sorted((ROOT / "tests").rglob("*.py"))
        for name, line in private_names(ast.parse(path.read_text()))
    ]
    assert not found, listed(found, "Test it through what is public; for a library's name see NEEDED:")


def test_exceptions_are_needed() -> None:
    files = [path.read_text() for path in (ROOT / "tests").rglob("*.py") if path.parent.name != "house"]
    unused = [name for name in NEEDED if not any(name in text for text in files)]
    assert not unused, f"no test needs {', '.join(unused)} any more: take it out of NEEDED"


@pytest.mark.parametrize(
    "line",
    ["cache._known", "self.journal._file = full", "f(x)._tasks", "from market.runtime import _read"],
)
def test_control_a_private_name_is_seen(line: str) -> None:
    assert len(list(private_names(ast.parse(line)))) == 1


@pytest.mark.parametrize("line", ["self._known", "super()._known()", "row._meta", "x.__class__"])
def test_control_what_is_ones_own_or_public_is_none(line: str) -> None:
    assert list(private_names(ast.parse(line))) == []
