"""Which lines of the product each test executes, and how long it takes: one recorded run, in var/mutants."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from .tree import ROOT, VAR, digest, product_digest

TABLES = """
CREATE TABLE IF NOT EXISTS product (digest TEXT);
CREATE TABLE IF NOT EXISTS files (path TEXT PRIMARY KEY, digest TEXT);
CREATE TABLE IF NOT EXISTS tests (
    id TEXT PRIMARY KEY, file TEXT, place INTEGER, level TEXT, seconds REAL, passed INTEGER
);
CREATE TABLE IF NOT EXISTS lines (test TEXT, file TEXT, path TEXT, bits BLOB);
CREATE INDEX IF NOT EXISTS lines_by_path ON lines (path);
"""


# Behind the digest of a file whose tests with servers were left out.
IN_PART = " in part"
SEEN, SEEN_ON_SERVICES = VAR / "seen.sqlite3", VAR / "seen_on_services.sqlite3"


class Test(NamedTuple):
    """`place` is where it stands in its file."""

    id: str
    file: str
    place: int
    level: str
    seconds: float
    passed: bool


def numbers(bits: bytes) -> set[int]:
    """As coverage packs the numbers of lines."""
    return {8 * place + bit for place, byte in enumerate(bits) for bit in range(8) if byte >> bit & 1}


class Seen:
    def __init__(self, path: Path = SEEN) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._database = sqlite3.connect(path)
        self._database.executescript(TABLES)

    def drop_if_stale(self) -> None:
        """Lines mean nothing once the product is another."""
        kept = self._database.execute("SELECT digest FROM product").fetchone()
        if kept != (now := (product_digest(),)):
            for table in ("product", "files", "tests", "lines"):
                self._database.execute(f"DELETE FROM {table}")  # noqa: S608
            self._database.execute("INSERT INTO product VALUES (?)", now)
            self._database.commit()

    def stale(self, files: Iterable[Path], *, with_served: bool) -> list[Path]:
        """Those that are not recorded as they are now."""
        kept: dict[str, str] = dict(self._database.execute("SELECT path, digest FROM files"))
        if not with_served:
            kept = {path: known.removesuffix(IN_PART) for path, known in kept.items()}
        return [path for path in files if kept.get(str(path)) != digest(ROOT / path)]

    def put(
        self, file: str, tests: Iterable[Test], lines: Iterable[tuple[str, str, bytes]], *, is_whole: bool
    ) -> None:
        """What one file of tests has shown; `lines` are those of a test, or of what its file shares."""
        known = digest(ROOT / file) + ("" if is_whole else IN_PART)
        with self._database:
            for table in ("tests", "lines"):
                self._database.execute(f"DELETE FROM {table} WHERE file = ?", (file,))  # noqa: S608
            self._database.executemany("INSERT INTO tests VALUES (?, ?, ?, ?, ?, ?)", tests)
            self._database.executemany(
                "INSERT INTO lines VALUES (?, ?, ?, ?)",
                ((test, file, path, bits) for test, path, bits in lines),
            )
            self._database.execute("REPLACE INTO files VALUES (?, ?)", (file, known))

    def tests(self) -> Mapping[str, Test]:
        """Those whose files are still there."""
        found = [Test(*row) for row in self._database.execute("SELECT * FROM tests")]
        there = {file for file in {test.file for test in found} if (ROOT / file).is_file()}
        return {test.id: test for test in found if test.file in there}

    def reaching(self, path: str, wanted: frozenset[int] | None) -> set[str]:
        """The tests, and the files of tests, that execute any of these lines; None means any at all."""
        rows = self._database.execute("SELECT test, bits FROM lines WHERE path = ?", (path,))
        if wanted is not None:
            return {test for test, bits in rows if wanted & numbers(bits)}
        # Each process that a test starts imports almost every module.
        every = {test for test, _ in rows}
        return {test for test in every if "::" in test} or every
