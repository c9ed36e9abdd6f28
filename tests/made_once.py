"""What every test would otherwise have made anew, and costs more than the test: a client of httpx reads all
certificates that there are, and a test client's middleware looks at each of some 250 static files."""

from __future__ import annotations

from functools import cache
from typing import Any

import httpx._transports.default as httpx_transports
from servestatic.middleware import ServeStaticMiddleware

find_files = ServeStaticMiddleware.add_files_from_finders
found: dict[str, Any] = {}
folders: list[tuple[str, str]] = []


def add_found_files(self: ServeStaticMiddleware) -> None:
    if not found:
        find_files(self)
        found.update(self.files)
        folders.extend(self.directories)
    self.files.update(found)
    for folder in folders:
        self.insert_directory(*folder)


def make_once() -> None:
    httpx_transports.create_ssl_context = cache(httpx_transports.create_ssl_context)  # type: ignore[attr-defined]
    ServeStaticMiddleware.add_files_from_finders = add_found_files
