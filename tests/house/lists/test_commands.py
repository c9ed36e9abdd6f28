"""Every command of ours is in the list that `tickwire-server help` prints without importing any."""

from __future__ import annotations

from django.core.management import get_commands

from config.command_line.help import COMMANDS
from tests.house.modules import ROOMS, ROOT, listed


def test_help_lists_every_command_of_ours() -> None:
    files = [path for room in ROOMS for path in (ROOT / room).glob("management/commands/*.py")]
    missing = sorted({path.stem for path in files if path.stem != "__init__"} - COMMANDS)
    assert not missing, listed(missing, "Give each a line in config/command_line/help.py:")


def test_help_lists_nothing_that_is_not_there() -> None:
    absent = sorted(COMMANDS - set(get_commands()))
    assert not absent, listed(absent, "config/command_line/help.py lists what is no command:")
