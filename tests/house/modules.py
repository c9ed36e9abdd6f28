"""The product's own modules and what each imports, read from the source."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
# From the top to the bottom. Those of one step know nothing of each other.
STEPS = (
    ("config",),
    ("operations",),
    ("demo", "pages"),
    ("archive",),
    ("analysis",),
    ("news", "signals_feed", "status"),
    ("market",),
    ("instruments",),
    ("accounts",),
    ("serving",),
    ("core",),
)
ROOMS = tuple(room for step in STEPS for room in step)
# The same within a room that is too large to be seen at once: its packages, and the modules beside them.
PARTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "market": (
        ("admin", "management", "urls"),
        ("api", "back_office", "metrics", "checks"),
        ("push", "overview"),
        ("streams",),
        ("runtime",),
        ("engine",),
        ("simulated_past",),
        ("store",),
        ("models", "simulated"),
        ("prices",),
    ),
    "news": (
        ("admin", "background", "management", "stream", "urls"),
        ("feed", "ingest", "newsroom"),
        ("entering",),
        ("calibration",),
        ("scoring",),
        ("sentiment",),
        ("language_models",),
        ("language", "models"),
        ("addresses", "labels"),
        ("digests",),
    ),
    "signals_feed": (
        ("admin", "apps", "management", "page_urls", "stream"),
        ("public_pages",),
        ("api", "judging"),
        ("publishing",),
        ("closing", "ledger_days"),
        ("ledger", "publishers", "stored_minutes"),
        ("levels", "models"),
        ("figures", "rules", "wire"),
    ),
}


class Import(NamedTuple):
    """`from market.engine import Engine as E` has the module market.engine and the name Engine."""

    importer: str
    module: str
    """Of ours, or of whoever else."""
    name: str
    """What is taken out of it; empty where the module itself is."""
    line: int
    is_late: bool
    """Within a function."""
    is_for_types: bool


class Module(NamedTuple):
    name: str
    path: Path
    tree: ast.Module

    @property
    def room(self) -> str:
        return self.name.partition(".")[0]

    @property
    def package(self) -> str:
        return self.name if self.path.name == "__init__.py" else self.name.rpartition(".")[0]


def paths(room: str) -> list[Path]:
    return sorted(path for path in (ROOT / room).rglob("*.py") if "migrations" not in path.parts)


def name_of(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def modules() -> dict[str, Module]:
    found = (
        Module(name_of(path), path, ast.parse(path.read_text())) for room in ROOMS for path in paths(room)
    )
    return {module.name: module for module in found}


@cache
def imports(name: str) -> tuple[Import, ...]:
    module = modules()[name]
    return tuple(_imports(module, module.tree, is_late=False, is_for_types=False))


def _imports(module: Module, node: ast.AST, *, is_late: bool, is_for_types: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        late = is_late or isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        types = is_for_types or (isinstance(child, ast.If) and ast.unparse(child.test) == "TYPE_CHECKING")
        if isinstance(child, ast.Import):
            for alias in child.names:
                yield Import(module.name, alias.name, "", child.lineno, late, types)
        elif isinstance(child, ast.ImportFrom):
            source = absolute(module, child)
            for alias in child.names:
                whole = f"{source}.{alias.name}"
                is_module = whole in modules()
                target, taken = (whole, "") if is_module else (source, alias.name)
                yield Import(module.name, target, taken, child.lineno, late, types)
        yield from _imports(module, child, is_late=late, is_for_types=types)


def absolute(module: Module, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.package.split(".")
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, *([node.module] if node.module else [])])


def own_imports() -> Iterator[Import]:
    """Of our modules, by our modules."""
    for name in modules():
        yield from (each for each in imports(name) if each.module.partition(".")[0] in ROOMS)


def listed(found: Iterable[str], way_out: str) -> str:
    """For an assertion, which would cut off what it found."""
    return "\n".join([way_out, *found])


def where(found: Import) -> str:
    path = modules()[found.importer].path.relative_to(ROOT)
    return f"{path}:{found.line} → {found.module}{'.' if found.name else ''}{found.name}"
