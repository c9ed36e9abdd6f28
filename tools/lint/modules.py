"""The product's own modules and what each imports, read from the source, once."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]


def steps(text: str) -> tuple[tuple[str, ...], ...]:
    """From the top to the bottom. Those of one step know nothing of each other."""
    return tuple(tuple(step.split()) for step in text.split("→"))


STEPS = steps(
    "config → operations → demo pages → archive → analysis → news signals_feed status → market → instruments"
    " → accounts → serving transparency → core"
)
ROOMS = tuple(room for step in STEPS for room in step)
# The same within a room that is too large to be seen at once: its packages, and the modules beside them.
PARTS = {
    "market": steps(
        "apps → admin management urls → api metrics checks → push overview → streams → runtime → engine"
        " → simulated_past → store → own_prices → models simulated → prices"
    ),
    "news": steps(
        "apps → admin background management stream urls → feed ingest newsroom → entering → calibration"
        " → scoring → sentiment → language_models → language models → addresses labels"
    ),
    "signals_feed": steps(
        "apps → admin management page_urls stream → public_pages → api bundle judging → publishing"
        " → publisher_checks → publishers → closing ledger_days result_checks → decisions → ledger"
        " → contradictions marks → judge venue_days → levels models → archive_access → record"
        " → figures rules wire → exits"
    ),
}


class Import(NamedTuple):
    """`from market.engine import Engine as E` has the module market.engine and the name Engine."""

    importer: str
    where: str
    module: str
    """Of ours, or of a library."""
    name: str
    """What is taken out of it; empty where the module itself is."""
    is_late: bool
    """Within a function."""
    is_for_types: bool


class Module(NamedTuple):
    name: str
    path: str
    tree: ast.Module

    @property
    def is_package(self) -> bool:
        return self.path.endswith("__init__.py")


class Product:
    def __init__(self, texts: dict[str, str]) -> None:
        """By path."""
        self.texts = texts
        self.modules = {
            name: Module(name, path, ast.parse(text))
            for path, text in texts.items()
            if (name := path.removesuffix(".py").removesuffix("/__init__").replace("/", "."))
        }

    @cached_property
    def imports(self) -> list[Import]:
        return [
            found for each in self.modules.values() for found in self._imports(each, each.tree, False, False)
        ]

    @cached_property
    def own_imports(self) -> list[Import]:
        """Of our modules, by our modules."""
        return [each for each in self.imports if room_of(each.module) in ROOMS]

    def _imports(self, module: Module, node: ast.AST, is_late: bool, is_for_types: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            late = is_late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            types = is_for_types or (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING")
            if isinstance(child, ast.Import | ast.ImportFrom):
                where = f"{module.path}:{child.lineno}"
                for target, taken in self._imported(module, child):
                    yield Import(module.name, where, target, taken, late, types)
            elif not isinstance(child, ast.expr):
                yield from self._imports(module, child, late, types)

    def _imported(self, module: Module, node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
        source = absolute(module, node) if isinstance(node, ast.ImportFrom) else ""
        for alias in node.names:
            whole = f"{source}.{alias.name}".strip(".")
            is_module = not source or whole in self.modules
            yield (whole, "") if is_module else (source, alias.name)


def absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    parts = parts[: len(parts) - node.level + module.is_package]
    return ".".join([*parts, *([node.module] if node.module else [])])


def room_of(name: str) -> str:
    return name.partition(".")[0]


def texts(*places: str) -> dict[str, str]:
    """Of the files in these folders of the repository, but for the migrations of the rooms."""
    files = (path for place in places for path in sorted((ROOT / place).rglob("*.py")))
    paths = {path.relative_to(ROOT): path for path in files}
    return {
        short.as_posix(): path.read_text() for short, path in paths.items() if short.parts[1] != "migrations"
    }
