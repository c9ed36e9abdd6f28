from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import time_machine
from pytest_django import Settings

from instruments.models import Instrument
from market import runtime as market
from tests.factories import make_instrument


@pytest.fixture
def clock() -> Iterator[time_machine.Traveller]:
    """The wall clock stands at the midnight with which the archived day begins, until a test moves it."""
    with time_machine.travel(datetime(2026, 11, 18, tzinfo=UTC), tick=False) as traveller:
        yield traveller


@pytest.fixture
def folder(tmp_path: Path, settings: Settings, clock: time_machine.Traveller) -> Iterator[Path]:
    """Of an installation that archives."""
    settings.ARCHIVE, settings.ARCHIVE_DIR = True, tmp_path / "archive"
    settings.VAR_DIR = tmp_path / "var"
    yield tmp_path
    market.prices.clear()


@pytest.fixture
def eurusd(transactional_db: None, folder: Path) -> Instrument:
    return make_instrument(stale_after_s=3_600)
