"""With an apt-get that only notes what it is asked, and brings what is named in `BRINGS`."""

import os
import uuid
from pathlib import Path

import pytest

from .debian import require_debian

APT = """#!/bin/sh
echo "$1" >> "$ASKED"
if [ "$1" = install ] && [ -n "$BRINGS" ]; then
    printf '#!/bin/sh\\n' > "$BRINGS"
    chmod +x "$BRINGS"
fi
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="apt-get is asked by root only: run this as root")


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "apt-get").write_text(APT)
    (tmp_path / "apt-get").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    monkeypatch.setenv("BRINGS", "")
    monkeypatch.setenv("ASKED", str(tmp_path / "asked"))
    monkeypatch.delenv("CI", raising=False)
    return tmp_path / "asked"


def unknown_program() -> str:
    return f"program-{uuid.uuid4().hex}"


def test_a_program_that_is_there_is_not_installed(asked: Path) -> None:
    assert require_debian("sh", "dash").endswith("/sh")
    assert not asked.exists()


@needs_root
def test_a_missing_program_is_installed_from_a_fresh_list(
    asked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = tmp_path / unknown_program()
    monkeypatch.setenv("BRINGS", str(wanted))

    assert require_debian(wanted.name, "its-package") == str(wanted)
    assert asked.read_text().split() == ["update", "install"]


@needs_root
def test_what_cannot_be_had_is_asked_for_once_and_skips_each_test(asked: Path) -> None:
    name = unknown_program()
    for _ in range(2):
        with pytest.raises(
            pytest.skip.Exception, match=f"{name} is missing: run `apt-get install its-package`"
        ):
            require_debian(name, "its-package")
    assert asked.read_text().split() == ["update", "install"]


def test_a_missing_program_fails_in_ci(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CI", "true")
    with pytest.raises(RuntimeError, match="apt-get install its-package"):
        require_debian(unknown_program(), "its-package")
