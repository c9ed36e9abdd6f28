from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.programs.packages import ROOT, build_wheel, install_alone, uv
from tests.programs.running import environment


def nowhere(home: Path) -> dict[str, str]:
    """No variable of ours says where anything is, and nothing is written into a home directory."""
    return {"VAR_DIR": "", "HOME": str(home / "nobody"), "PYTHONPATH": "", "PYTHONDONTWRITEBYTECODE": "1"}


def typed(program: Path, home: Path, *words: str, **changes: str) -> subprocess.CompletedProcess[str]:
    names = environment(home, **nowhere(home)) | changes
    return subprocess.run(
        [program, *words], cwd=home, env=names, capture_output=True, text=True, timeout=PATIENCE_S
    )


def files_of(program: Path) -> dict[Path, int]:
    """All of its environment, each with the time at which it was written."""
    (packages,) = program.parents[1].glob("lib/*/site-packages")
    return {path: path.stat().st_mtime_ns for path in packages.rglob("*")}


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
