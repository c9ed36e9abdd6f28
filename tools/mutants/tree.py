"""The modules of the product, and where a tree of its files lies."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROOMS = (
    *("accounts", "analysis", "archive", "config", "core", "demo", "instruments", "market", "news"),
    *("operations", "pages", "serving", "signals_feed", "status", "transparency"),
)
VAR = ROOT / "var" / "mutants"
PYTEST = ("-m", "pytest")
ON_SERVICES = ("-m", "tests.programs.scaled", *PYTEST, "-m", "services")
"""The same tests on PostgreSQL and Redis are a level of their own."""


def module_files(root: Path = ROOT) -> Iterator[Path]:
    """Relative to the tree, in order; migrations are records of the past."""
    for room in ROOMS:
        for path in sorted((root / room).rglob("*.py")):
            if "migrations" not in path.parts:
                yield path.relative_to(root)


def module_name(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def paths_by_module(root: Path = ROOT) -> dict[str, Path]:
    return {module_name(path): path for path in module_files(root)}


def digest(path: Path) -> str:
    return sha256(path.read_bytes()).hexdigest()[:16]


def product_digest(root: Path = ROOT) -> str:
    every = (f"{path} {digest(root / path)}" for path in module_files(root))
    return sha256("\n".join(every).encode()).hexdigest()[:16]
