"""What another room may use stands in the room's door: the __init__ of the app, or of one of its parts."""

from __future__ import annotations

import ast

import pytest

from tests.house.modules import Import, listed, modules, own_imports, where

# The wiring sees all rooms. These are entered anywhere: the platform and the server are made to be imported
# piece by piece, and a door of the streams would bring sockets into those of their modules that are pure.
SEES_ALL = {"config"}
OPEN = ("core.", "serving.", "market.streams.")


def crosses(found: Import) -> bool:
    return found.importer.partition(".")[0] != found.module.partition(".")[0]


def is_at_a_door(found: Import) -> bool:
    """Two components deep at most: a module that stands right in its app, or a name that a package offers."""
    if f"{found.module}.".startswith(OPEN) or found.importer.partition(".")[0] in SEES_ALL:
        return True
    if found.module.count(".") > 1:
        return False
    is_package = modules()[found.module].path.name == "__init__.py"
    return found.name in offered(found.module) if is_package else True


def door(found: Import) -> str:
    """The file in which it could be offered."""
    return "/".join([*found.module.split(".")[:2], "__init__.py"])


def offered(package: str) -> set[str]:
    """What its `__all__` says."""
    for node in modules()[package].tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
            return set(ast.literal_eval(node.value))
    return set()


def test_nobody_goes_past_a_door() -> None:
    past = [
        f"{where(found)}: not at a door; offer it in the __all__ of {door(found)}"
        for found in own_imports()
        if crosses(found) and not is_at_a_door(found)
    ]
    assert not past, listed(past, "Imports that go past a door:")


@pytest.mark.parametrize(
    "package", [name for name, each in modules().items() if each.path.name == "__init__.py"]
)
def test_a_door_offers_only_what_somebody_uses(package: str) -> None:
    used = {
        found.name or found.module.rpartition(".")[2]
        for found in own_imports()
        if found.module.startswith(package)
    }
    unused = sorted(offered(package) - used)
    assert not unused, f"nobody imports {', '.join(unused)}: take it out of the __all__ of {package}"


def test_control_an_import_past_a_door_is_seen() -> None:
    def made(module: str, name: str) -> Import:
        return Import("news.feed", module, name, 1, is_late=False, is_for_types=False)

    assert is_at_a_door(made("market.runtime", "market"))
    assert is_at_a_door(made("market.prices", "TIMEFRAMES"))
    assert not is_at_a_door(made("market.prices.candles", "TIMEFRAMES"))
    assert door(made("market.prices.candles", "TIMEFRAMES")) == "market/prices/__init__.py"
    assert not is_at_a_door(made("market.prices", "nothing"))
