"""One server and one archive for a whole file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import time_machine
from django.test import override_settings

from archive.index import archive_index
from tests.client import Api, Server
from tests.factories import NOON, make_account, make_key, make_tier


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("archive")
    with override_settings(ARCHIVE_DIR=folder, ARCHIVE_S3_URL=None):
        yield folder


@pytest.fixture(scope="module", autouse=True)
def noon() -> Iterator[None]:
    with time_machine.travel(NOON, tick=False):
        yield


@pytest.fixture(autouse=True)
def _looks_anew() -> Iterator[None]:
    archive_index.forget()
    yield
    archive_index.forget()


@pytest.fixture(scope="module")
def entitled(shared_server: Server, root: Path) -> Iterator[Api]:
    """With a key of a tier that has the archive, and is never used up."""
    tier = make_tier("archivist", requests_per_minute=100_000, archive=True)
    with Api(shared_server, make_key(make_account(tier=tier))) as client:
        yield client
