"""The commands of docs/operate/accounts.md."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from django.core.management import call_command

from accounts.models import User
from tests.documents.commands import sub_commands
from tests.factories import make_user


@pytest.mark.django_db
def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_user("NAME")
    for line in sub_commands("accounts.md"):
        name, *words = shlex.split(line.replace("/srv/exports", str(tmp_path)))
        call_command(name.replace("-", "_"), *words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["NAME.zip", "name.zip"]
    assert not User.objects.exists()
