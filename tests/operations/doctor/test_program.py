from __future__ import annotations

from pathlib import Path

from pytest_django.fixtures import Settings

from operations.doctor.program import look_at_static_files

from .diagnoses import faults, only_fault


def test_static_files_of_production_that_are_missing_are_told(settings: Settings, tmp_path: Path) -> None:
    settings.PRODUCTION, settings.STATIC_ROOT = True, tmp_path / "static"
    level, says = only_fault(look_at_static_files())
    assert level == "warn"
    assert str(tmp_path / "static") in says


def test_outside_production_none_are_needed(settings: Settings) -> None:
    assert faults(look_at_static_files()) == []
