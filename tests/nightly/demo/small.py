"""A demo of two instruments, which starts in a fraction of the time."""

from __future__ import annotations

from pathlib import Path

from tests.programs.commands import manage

PREPARE = """
from django.core.management import call_command
from instruments.models import Instrument
call_command("migrate", verbosity=0)
call_command("load_instruments", verbosity=0)
Instrument.objects.exclude(symbol="BTCUSD").delete()
"""


def prepare_small(var_dir: Path) -> Path:
    """BTCUSD, and TEST that the demo adds."""
    run(var_dir, PREPARE)
    return var_dir


def run(var_dir: Path, code: str, **changes: str) -> str:
    """A few lines in the shell of the installation; what they print."""
    done = manage(var_dir, "shell", "-v", "0", "-c", code, **changes)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
