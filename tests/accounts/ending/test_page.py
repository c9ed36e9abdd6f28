"""The commands of docs/operate/accounts.md."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
from django.core.management import call_command

from accounts.models import User
from tests.factories import make_user

PAGE = Path(__file__).parents[3] / "docs/operate/accounts.md"
COMMANDS = re.findall(r"^    python manage\.py (.+)$", PAGE.read_text(), re.MULTILINE)


@pytest.mark.django_db
def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_user("NAME")
    for line in COMMANDS:
        call_command(*shlex.split(line.replace("/srv/exports", str(tmp_path))))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["NAME.zip", "name.zip"]
    assert not User.objects.exists()
