"""The page that shows newcomers around names files that are there, and the order that lint holds to."""

from __future__ import annotations

import re

import pytest

from tools.lint.modules import PARTS, ROOMS, ROOT, STEPS

PAGE = (ROOT / "docs/architecture.md").read_text()
NAMES = sorted({"manage.py"} ^ set(re.findall(r"(?<![.\w/])[\w/]*\w\.py\b|(?<![.\w/])\w+/[\w/]*/", PAGE)))
PLACES = (*ROOMS, "clients", "docs", "templates", "tests", "tools")
FILES = {path.relative_to(ROOT).as_posix() for place in PLACES for path in (ROOT / place).rglob("*.*")}


@pytest.mark.parametrize("name", NAMES)
def test_every_file_in_it_is_there(name: str) -> None:
    end = "" if name.endswith("/") else "$"
    assert any(re.search(rf"/{re.escape(name)}{end}", f"/{file}") for file in FILES)


def test_it_has_the_rooms_in_order() -> None:
    assert " → ".join(", ".join(step) for step in STEPS) in PAGE
    assert re.findall(r"^\| `(\w+)/` \|", PAGE, re.MULTILINE) == list(ROOMS)


@pytest.mark.parametrize("room", PARTS)
def test_it_has_the_parts_of_a_room_in_order(room: str) -> None:
    order = " → ".join(", ".join(f"`{part}`" for part in step) for step in PARTS[room])
    assert order in " ".join(PAGE.split())
