"""An import in a process of its own, ended in the middle."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from django.conf import settings
from django.db import connection

from market.models import UnfinishedImport
from tests.factories import make_instrument
from tests.patience import PATIENCE_S, wait_until
from tests.programs.running import interruptible
from tests.reliability.services.processes import ROOT, tied

from .importing import forget, import_files, rows, walk, write

pytestmark = [
    pytest.mark.served,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("transactional_db"),
    pytest.mark.services,
]


def start(path: str) -> subprocess.Popen[str]:
    """`manage.py import_ticks` over the database of this test."""
    command = tied("manage.py", "import_ticks", "EURUSD", path)
    environment = os.environ | {"DATABASE_URL": database_url(), "VAR_DIR": str(settings.VAR_DIR)}
    pipe = subprocess.PIPE
    with interruptible():
        return subprocess.Popen(command, cwd=ROOT, env=environment, text=True, stdout=pipe, stderr=pipe)


def database_url() -> str:
    known = connection.settings_dict
    if connection.vendor == "sqlite":
        return f"sqlite:///{known['NAME']}"
    return "postgresql://{USER}:{PASSWORD}@{HOST}:{PORT}/{NAME}".format(**known)


def wait_until_it_got_on(before: UnfinishedImport | None) -> UnfinishedImport:
    def has_got_on() -> bool:
        known = UnfinishedImport.objects.first()
        return known is not None and (before is None or known.minute_at > before.minute_at)

    wait_until(has_got_on)
    return UnfinishedImport.objects.get()


def test_import_goes_on_after_ctrl_c_and_after_kill_9(tmp_path: Path) -> None:
    make_instrument("EURUSD")
    # Fourteen days with a batch each.
    path = write(tmp_path / "EURUSD.jsonl", walk("2026-10-01T00:10", 14 * 1440, every_s=3600), 2_800)
    import_files(path)
    whole = rows()
    forget()

    stopped = start(path)
    reached = wait_until_it_got_on(None)
    stopped.send_signal(signal.SIGINT)
    complaint = stopped.communicate(timeout=PATIENCE_S)[1]
    assert complaint.endswith("CommandError: Stopped. The same command goes on from here.\n")

    killed = start(path)
    wait_until_it_got_on(UnfinishedImport.objects.get())
    killed.kill()
    killed.communicate(timeout=PATIENCE_S)
    assert UnfinishedImport.objects.get().minute_at > reached.minute_at

    import_files(path)
    assert rows() == whole
