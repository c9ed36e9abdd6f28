from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django.fixtures import Settings

from operations.doctor.program import check_static_files, judge_descriptors

from .diagnoses import faults, only_fault


def test_static_files_of_production_that_are_missing_are_told(settings: Settings, tmp_path: Path) -> None:
    settings.PRODUCTION, settings.STATIC_ROOT = True, tmp_path / "static"
    level, says = only_fault(check_static_files())
    assert level == "warn"
    assert str(tmp_path / "static") in says


def test_outside_production_none_are_needed(settings: Settings) -> None:
    assert faults(check_static_files()) == []


@pytest.mark.parametrize(("most", "levels"), [(200, ["fail"]), (2_000, ["warn"]), (4_096, [])])
def test_too_few_open_files_of_the_service_are_told(most: int, levels: list[str]) -> None:
    assert [level for level, says in faults([judge_descriptors(most)]) if f"{most:,} files" in says] == levels
