from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.packages import ROOT, build_wheel, install_alone, uv

from .installed import files_of


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_wheel(ROOT, tmp_path_factory.mktemp("built"))


@pytest.fixture(scope="session")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("installed") / "environment"
    commands = install_alone(folder, "--require-hashes", "-r", ROOT / "requirements.lock")
    uv("pip", "install", "--quiet", "--python", commands / "python", "--no-deps", wheel)
    return commands / "tickwire-server"


@pytest.fixture(scope="session")
def installed_files(program: Path) -> dict[Path, int]:
    return files_of(program)
