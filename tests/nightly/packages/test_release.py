"""`make packages` builds all that a release publishes."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tarfile
import zipfile
from pathlib import Path

import pytest

from tests.patience import PATIENCE_S
from tests.programs.packages import ROOT

ADDRESS = "https://code.example/tickwire"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built") / "dist"
    ran = subprocess.run(
        ["make", "--no-print-directory", "packages", f"DIST={folder}"],
        cwd=ROOT,
        env={**os.environ, "PROJECT_URL": ADDRESS},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S * 5,
    )
    assert ran.returncode == 0, ran.stderr
    return folder


@pytest.mark.parametrize("package", ["server", "client"])
def test_python_packages_say_where_they_come_from(built: Path, package: str) -> None:
    (wheel,) = (built / package).glob("*.whl")
    with zipfile.ZipFile(wheel) as opened:
        metadata = opened.read(next(name for name in opened.namelist() if name.endswith("METADATA"))).decode()
    assert f"Project-URL: Source, {ADDRESS}\n" in metadata
    assert "Classifier: Typing :: Typed\n" in metadata
    assert len(list((built / package).glob("*.tar.gz"))) == 1


def test_npm_package_is_compiled(built: Path) -> None:
    (packed,) = built.glob("*.tgz")
    with tarfile.open(packed) as opened:
        assert {"package/dist/index.js", "package/dist/index.d.ts"} <= set(opened.getnames())


def test_list_of_parts_has_each_of_the_lock_with_its_hash(built: Path) -> None:
    parts = json.loads((built / "sbom.json").read_text())["components"]
    locked = re.findall(r"(?m)^([a-z0-9._-]+)==(\S+)", (ROOT / "requirements.lock").read_text())
    assert {(part["name"], part["version"]) for part in parts} == set(locked)
    assert all(part["externalReferences"][0]["hashes"] for part in parts)
