"""The last release, as the file RELEASE names it: version and commit, then the last migration of each app."""

from __future__ import annotations

from typing import NamedTuple

from tools.lint.modules import ROOT


class Release(NamedTuple):
    version: str
    commit: str
    migrations: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        return f"{self.version} ({self.commit[:12]})"


def last_release() -> Release:
    (version, commit), *migrations = (line.split() for line in (ROOT / "RELEASE").read_text().splitlines())
    return Release(version, commit, tuple((app, name) for app, name in migrations))


def numbers(version: str) -> tuple[int, ...]:
    """Of "0.10.2", so that versions can be compared."""
    return tuple(int(part) for part in version.split("."))
