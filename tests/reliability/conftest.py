from __future__ import annotations

import pytest

from . import fixtures
from .fixtures import Tell as Tell
from .fixtures import rows as rows
from .fixtures import sqlite_in as sqlite_in


def pytest_configure(config: pytest.Config) -> None:
    fixtures.plug_in(config)


@pytest.fixture(autouse=True, scope="module")
def _own_database(rows: None) -> None:
    """For whatever a file has."""
