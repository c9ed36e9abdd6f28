"""What a command imports is what it costs to start: an operator's script calls it a hundred times."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.served

ROOT = Path(__file__).resolve().parents[2]
# Each of them takes longer to import than the command takes to work.
DEAR = ("twisted.internet", "daphne", "fido2", "numpy", "onnxruntime", "unfold.admin", "config.urls")
SHOW = "import sys; from config.installation import prepare; prepare(); import django; django.setup(); "
# There are 1,731, and each costs about a third of a millisecond.
MOST = 2_200
COMMAND = "from django.core.management import call_command; call_command({name!r}, 'ann'); "


def imported_by(statements: str, var_dir: Path) -> set[str]:
    program = f"{SHOW}{statements}print(*sys.modules, sep='\\n')"
    environment = os.environ | {"DJANGO_SETTINGS_MODULE": "config.settings", "VAR_DIR": str(var_dir)}
    environment.pop("DATABASE_URL", None)
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return set(ran.stdout.split())


@pytest.fixture(scope="module")
def var_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("imports") / "var"


def test_commands_import_no_server_and_no_pages(var_dir: Path) -> None:
    migrate = "from django.core.management import call_command; call_command('migrate', verbosity=0); "
    imported = imported_by(migrate + COMMAND.format(name="issue_key"), var_dir)

    assert "accounts.keys.issuing" in imported
    assert sorted(imported.intersection(DEAR)) == []
    # Seconds would be another number on each machine.
    assert len(imported) < MOST


def test_help_needs_neither_django_nor_the_settings() -> None:
    program = "import sys; from tickwire_server import main; main(); print(*sys.modules, sep='\\n')"
    ran = subprocess.run(
        [sys.executable, "-c", program, "help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    lines = set(ran.stdout.splitlines())
    assert "config.command_line.words" in lines
    assert not lines & {"django", "config.settings", "asyncio"}


def test_control_pages_and_servers_import_what_is_dear(var_dir: Path) -> None:
    imported = imported_by("import config.urls, daphne.server; ", var_dir)
    assert imported.issuperset({"twisted.internet", "daphne", "fido2", "unfold.admin", "config.urls"})
