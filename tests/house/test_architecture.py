"""The page that shows newcomers around names files that are there."""

from __future__ import annotations

import re

import pytest

from tests.house.modules import PARTS, ROOMS, ROOT, STEPS

PAGE = (ROOT / "docs/architecture.md").read_text()
NAMES = sorted({"manage.py"} ^ set(re.findall(r"(?<![.\w/])[\w/]*\w\.py\b|(?<![.\w/])\w+/[\w/]*/", PAGE)))
PLACES = (*ROOMS, "clients", "docs", "templates", "tests", "tools")
FILES = {path.relative_to(ROOT).as_posix() for place in PLACES for path in (ROOT / place).rglob("*.*")}


@pytest.mark.parametrize("name", NAMES)
def test_every_file_in_it_is_there(name: str) -> None:
    end = "" if name.endswith("/") else "$"
    is_there = any(re.search(rf"/{re.escape(name)}{end}", f"/{file}") for file in FILES)
    assert is_there, f"docs/architecture.md names {name}, which is not there: name what took its place"


def test_it_has_the_rooms_in_order() -> None:
    order = " → ".join(", ".join(step) for step in STEPS)
    assert order in PAGE, f"docs/architecture.md lacks the order that tests/house/modules.py has: {order}"
    rows = re.findall(r"^\| `(\w+)/` \|", PAGE, re.MULTILINE)
    assert rows == list(ROOMS), "the table of rooms in docs/architecture.md has other rows, or another order"


@pytest.mark.parametrize("room", PARTS)
def test_it_has_the_parts_of_a_room_in_order(room: str) -> None:
    order = " → ".join(", ".join(f"`{part}`" for part in step) for step in PARTS[room])
    is_there = order in " ".join(PAGE.split())
    assert is_there, f"docs/architecture.md lacks the order that tests/house/modules.py has: {order}"
