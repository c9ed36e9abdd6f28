"""Arrows go one way: config → operations → demo, pages → analysis → news, signals_feed, status → market →
instruments → accounts → serving → core. What a lower room needs of a higher one is handed down by
config/wiring.py."""

from __future__ import annotations

import ast
import re

import pytest

from tests.house.modules import (
    PARTS,
    ROOMS,
    ROOT,
    STEPS,
    Import,
    imports,
    listed,
    modules,
    own_imports,
    where,
)

STEP_OF = {room: number for number, step in enumerate(STEPS) for room in step}
STEP_OF_PART = {
    (room, part): number for room in PARTS for number, step in enumerate(PARTS[room]) for part in step
}
# Django calls it when there are models, and not before.
READY = ("config.apps", "config.wiring")
# Programs and libraries that may be missing, or cost more than most commands need.
LATE = frozenset(
    {
        "psycopg",
        "redis.asyncio.connection",
        "redis.connection",
        "redis.exceptions",
        "onnxruntime",
        "tokenizers",
        "numpy",
        "pyarrow",
        "pyarrow.csv",
    }
)
# Where Django and its libraries demand a name in words.
NAMED_BY_DJANGO = re.compile(r"^config/(settings|library_settings|apps|urls|asgi)\.py$|/urls\.py$|/apps\.py$")
# Data, and a program that is started.
TEXTS = frozenset({"accounts.page_tokens", "accounts.demo_login", "accounts.known_device", "accounts.access"})


def goes_up(found: Import) -> bool:
    importer, imported = found.importer.partition(".")[0], found.module.partition(".")[0]
    return importer != imported and STEP_OF[imported] <= STEP_OF[importer]


def test_rooms_import_only_from_below() -> None:
    found = [where(each) for each in own_imports() if goes_up(each)]
    way_out = "Move what these import to a lower room, or hand it down in config/wiring.py:"
    assert not found, listed(found, way_out)


def part_of(module: str) -> tuple[str, str]:
    room, _, rest = module.partition(".")
    return room, rest.partition(".")[0]


def goes_up_in_its_room(found: Import) -> bool:
    """Also where it goes past the list: into the room itself, or into a part that the list does not name."""
    importer, imported = part_of(found.importer), part_of(found.module)
    if importer == imported or importer[0] != imported[0] or importer[0] not in PARTS:
        return False
    return STEP_OF_PART.get(imported, -1) <= STEP_OF_PART.get(importer, -1)


def test_parts_of_a_room_import_only_from_below() -> None:
    found = [where(each) for each in own_imports() if goes_up_in_its_room(each)]
    way_out = "Move what these import to a part below; PARTS in tests/house/modules.py has the order:"
    assert not found, listed(found, way_out)


@pytest.mark.parametrize("room", PARTS)
def test_every_part_of_an_ordered_room_has_its_step(room: str) -> None:
    parts = {part_of(name) for name in modules() if name.startswith(f"{room}.")}
    others = sorted(part for _, part in parts ^ {part for part in STEP_OF_PART if part[0] == room})
    assert not others, f"in {room}, but not in PARTS of tests/house/modules.py, or the reverse: {others}"


def test_nothing_of_the_product_imports_tests_or_tools() -> None:
    outside = {"tests", "tools"}
    found = [
        where(each) for name in modules() for each in imports(name) if each.module.split(".")[0] in outside
    ]
    assert not found, listed(found, "The product is installed without tests and tools:")


def test_control_an_import_upwards_or_beside_is_seen() -> None:
    def made(importer: str, imported: str) -> Import:
        return Import(importer, imported, "", 1, is_late=False, is_for_types=False)

    assert goes_up(made("accounts.models", "market.runtime"))
    assert goes_up(made("news.feed", "status.models"))
    assert goes_up(made("demo.people", "pages.terminal"))
    assert not goes_up(made("market.runtime", "accounts.models"))
    assert goes_up_in_its_room(made("market.store.lease", "market.engine.bus.journal"))
    assert goes_up_in_its_room(made("market.prices.day", "market.runtime"))
    assert not goes_up_in_its_room(made("market.engine.engine", "market.store.checkpoints"))


def test_no_module_of_ours_is_imported_within_a_function() -> None:
    late = (found for found in own_imports() if found.is_late)
    found = [where(each) for each in late if (each.importer, each.module) != READY]
    way_out = "Import these at the head of the module; where that makes a circle, end it:"
    assert not found, listed(found, way_out)


def test_what_is_imported_late_is_known() -> None:
    late = [each for name in modules() for each in imports(name) if each.is_late]
    libraries = [each for each in late if each.module.partition(".")[0] not in ROOMS]
    unknown = [where(each) for each in libraries if each.module not in LATE]
    assert not unknown, listed(unknown, "Import these at the head of the module, or say in LATE why not:")


def test_nothing_of_ours_is_named_in_a_string() -> None:
    """But where Django demands it: a typo there is found at start, elsewhere when it is too late."""
    found = [
        f"{path}:{node.lineno} {node.value}"
        for module in modules().values()
        if not NAMED_BY_DJANGO.search(path := module.path.relative_to(ROOT).as_posix())
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and names_module(node.value)
    ]
    assert not found, listed(found, "Import what these texts name; if one is data, it belongs in TEXTS:")


def test_control_a_dotted_name_in_a_string_is_seen() -> None:
    assert names_module("market.runtime.MarketRuntime")
    assert not names_module("market.candles_imported")
    assert not names_module("example.com")


def names_module(text: str) -> bool:
    if text in TEXTS or not re.fullmatch(r"[a-z_]+(\.\w+)+", text):
        return False
    parts = text.split(".")
    return any(".".join(parts[:length]) in modules() for length in range(2, len(parts) + 1))
