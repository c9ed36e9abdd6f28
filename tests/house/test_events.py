"""A control event is named by the enumeration: after a typo in a text nobody would ever hear of it."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from core.events.kinds import EventKind
from tests.house.modules import listed, modules

# Clients of the signal stream read this one, too.
FRAMES = {"signal.closed"}
KINDS = {str(kind) for kind in EventKind}


def literals(tree: ast.AST) -> Iterator[str]:
    """Texts of kinds, and whatever is published or listened for by a text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in KINDS - FRAMES:
            yield str(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            first = node.args[0] if node.args else None
            if node.func.attr in ("publish", "on") and isinstance(first, ast.Constant):
                yield str(first.value)


def test_no_event_kind_is_written_as_text() -> None:
    found = [
        f"{name}: {text!r}"
        for name, module in modules().items()
        if name != "core.events.kinds"
        for text in literals(module.tree)
    ]
    assert not found, listed(found, "Take the member of EventKind (core/events/kinds.py) instead of these:")


def test_control_a_kind_as_text_is_seen() -> None:
    tree = ast.parse("ControlEvent.objects.publish('key.rewoked')\nprint('key.revoked')")
    assert sorted(literals(tree)) == ["key.revoked", "key.rewoked"]
