"""Words that a native technical editor would not leave in documents, pages and messages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.house.modules import ROOMS, ROOT, listed

DOCUMENTS = [
    *ROOT.glob("*.md"),
    *(ROOT / "docs").rglob("*.md"),
    *(ROOT / "clients").glob("*/README.md"),
    *(ROOT / "deploy").glob("*.md"),
]
TEMPLATES = [path for path in (ROOT / "templates").rglob("*") if path.suffix in (".html", ".md", ".txt")]
# A text of a model would change only with a migration.
MODULES = [
    path
    for room in (*ROOMS, "clients/python/tickwire")
    for path in (ROOT / room).rglob("*.py")
    if not {"migrations", "models", "models.py"} & {*path.parts}
]
ODD = re.compile(
    r"\bnoughts?\b|on the other side\b|what needs somebody|the rest of every|\bwhoever\b|told again"
    r"|so that none\b|(?<![-'{])\banew\b|\bhand(?:ed|s)? on\b|for want of|in the clear\b"
    r"|\buntold\b|\bseldom\b|\bjust now\b|\bwhat there is\.|\bget it\.|\bis of none\b|\bare of none\b"
    r"|\bgoes? on with\b|\bno frame comes\b|\bto be computed again\b"
    r"|(?<!there )\bis no (?:address|backup|copy|date|day|file|mail|manifest|name|number|path|port|price)\b"
    r"|\bis no (?:plain|whole)\b",
    re.IGNORECASE,
)


def texts_of(path: Path) -> Iterator[str]:
    """The strings of a module, but for docstrings and single words such as options."""
    tree = ast.parse(path.read_text())
    bare = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in bare:
            yield node.value if " " in node.value else ""


def odd_words(text: str) -> list[str]:
    flat = " ".join(re.sub(r"`[^`]*`", "`", text).split())
    return [flat[max(0, found.start() - 30) : found.end() + 30] for found in ODD.finditer(flat)]


@pytest.mark.parametrize("path", [*DOCUMENTS, *TEMPLATES], ids=lambda path: str(path.relative_to(ROOT)))
def test_document_is_in_plain_english(path: Path) -> None:
    found = odd_words(path.read_text())
    assert not found, listed(found, f"Say these in plain words, in {path.relative_to(ROOT)}:")


def test_messages_are_in_plain_english() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {words}"
        for path in MODULES
        for text in texts_of(path)
        for words in odd_words(text)
    ]
    assert not found, listed(found, "Say these in plain words:")


def test_odd_words_are_found() -> None:
    text = "64 noughts for\nthe first, and whoever reads `--anew` begins anew"
    assert len(odd_words(text)) == 3
