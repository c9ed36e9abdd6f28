from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from .journal_processes import started


@pytest.fixture(autouse=True)
def _closed_journals() -> Iterator[None]:
    yield
    while started:
        asyncio.run(started.pop().bus.close())
