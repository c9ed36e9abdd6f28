"""Imports that are stopped, and go on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from instruments.models import Instrument
from market.models import UnfinishedImport
from tests.factories import make_instrument

from .importing import Rows, forget, import_files, make_importer, rows, walk, write

pytestmark = [pytest.mark.django_db, pytest.mark.services]


@pytest.fixture(autouse=True)
def instrument() -> Instrument:
    return make_instrument("EURUSD")


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    """Two days and a half in two files and twenty batches, cut within a minute."""
    ticks = walk("2026-11-15T10:00", 60 * 60, every_s=40)
    files = ticks[:2500], ticks[2500:]
    return [write(tmp_path / f"{number}.jsonl", part, 250) for number, part in enumerate(files)]


@pytest.fixture
def whole(paths: list[str]) -> Rows:
    """What an import makes that nothing stops."""
    import_files(*paths)
    made = rows()
    forget()
    return made


def after(batches: int) -> Callable[[int], bool]:
    """Stops the import then."""
    left = iter(range(batches - 1))
    return lambda file: next(left, None) is not None


@pytest.mark.served
@pytest.mark.parametrize("batches", [2, 15])
def test_stopped_import_goes_on_to_the_same_candles(paths: list[str], whole: Rows, batches: int) -> None:
    stops = 0
    while not make_importer().run(paths, None, after(batches)):
        stops += 1
        assert stops < 50, "It does not get on."

    assert stops
    assert rows() == whole


def test_import_goes_on_where_it_stopped_and_leaves_no_trace(paths: list[str]) -> None:
    make_importer().run(paths, None, after(8))
    assert UnfinishedImport.objects.exists()
    importer = make_importer()

    importer.run(paths, None, lambda done: True)

    assert importer.tally.ticks < 4500
    assert not UnfinishedImport.objects.exists()


@pytest.mark.parametrize("terms", [{"restart": True}, {"price": "mid"}], ids=["restart", "other kind"])
def test_import_begins_anew_where_that_is_wanted(paths: list[str], terms: dict[str, Any]) -> None:
    make_importer().run(paths, None, after(8))

    assert import_files(*paths, **terms).ticks == 5400


def test_file_that_changed_meanwhile_is_another_file(paths: list[str]) -> None:
    make_importer().run(paths[:1], None, after(8))
    write(Path(paths[0]), walk("2026-11-15T10:00", 60))
    importer = make_importer()

    importer.run(paths[:1], None, lambda done: True)

    assert importer.tally.ticks == 180
