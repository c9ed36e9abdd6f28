"""Rows 74 and 75: a restore and a move that are killed have lost nothing."""

from __future__ import annotations

import subprocess
from datetime import timedelta
from pathlib import Path

import psycopg
import pytest
from django.db import connection

from accounts.models import User
from core.process import UNFINISHED
from instruments.models import Instrument
from market.models import Candle
from tests.factories import NOON, make_instrument, make_user
from tests.reliability.services.processes import ROOT, Installation, tied

pytestmark = [
    pytest.mark.usefixtures("rows"),
    pytest.mark.row("74", "a restore that is killed has changed everything or nothing"),
]
CANDLES = 5_000


def make_candles(instrument: Instrument) -> None:
    Candle.objects.bulk_create(
        Candle(
            instrument=instrument,
            timeframe="1h",
            opened_at=NOON + timedelta(hours=hour),
            **dict.fromkeys(("open", "high", "low", "close", "volume"), 1),
        )
        for hour in range(CANDLES)
    )


@pytest.fixture(params=["embedded", "scaled"])
def filled(request: pytest.FixtureRequest) -> Installation:
    installation: Installation = request.getfixturevalue(request.param)
    with installation.orm():
        instrument = Instrument.objects.filter(symbol="EURUSD").first() or make_instrument()
        make_candles(instrument)
    return installation


def killed_at(installation: Installation, table: str, *words: str) -> None:
    """A command of ours, killed when it says that it is done with a table."""
    command, environment = tied("manage.py", *words), installation.environment(PYTHONUNBUFFERED="1")
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            if table in line:
                process.kill()
                break
    assert process.returncode == -9


def test_a_kill_during_a_restore_loses_nothing(filled: Installation, tmp_path: Path) -> None:
    file = tmp_path / "backup.zip"
    killed_at(filled, "instruments_instrument", "backup", str(file))
    assert not file.exists()
    assert filled.manage("backup", str(file)).returncode == 0
    with filled.orm():
        make_user("since")
    killed_at(filled, "instruments_instrument", "restore", str(file), "--replace")
    with filled.orm(only_reads=True):
        assert User.objects.filter(username="since").exists()
        assert Candle.objects.filter(timeframe="1h").count() >= CANDLES
    done = filled.manage("restore", str(file), "--replace")
    assert done.returncode == 0, done.stderr
    with filled.orm(only_reads=True):
        assert not User.objects.filter(username="since").exists()
        assert Candle.objects.filter(timeframe="1h").count() >= CANDLES
        assert UNFINISHED not in connection.introspection.table_names()


@pytest.mark.row("75", "a move that is killed can be resumed, and both databases end up identical")
def test_a_killed_move_resumes_where_it_stopped(
    embedded: Installation, scaled: Installation, tmp_path: Path
) -> None:
    with embedded.orm():
        make_candles(make_instrument())
    with embedded.serve(1):
        refused = embedded.manage("move", embedded.database_url, f"sqlite:///{tmp_path / 'other.sqlite3'}")
        assert "runs on the source" in refused.stderr
    # It was stopped in order.
    with psycopg.connect(scaled.database_url, autocommit=True) as admin:
        admin.execute("CREATE DATABASE moved")
    address = scaled.database_url.rpartition("/")[0] + "/moved"
    moved = Installation(tmp_path, address)
    words = ("move", embedded.database_url, address)
    killed_at(embedded, "instruments_instrument", *words)
    refused = moved.manage("serve")
    assert (refused.returncode, "has not finished" in refused.stderr) == (1, True)
    done = embedded.manage(*words)
    assert done.returncode == 0, done.stderr
    assert "Going on after" in done.stdout
    with embedded.orm(only_reads=True):
        before = list(Candle.objects.order_by("pk").values_list())
    with moved.orm(only_reads=True):
        assert list(Candle.objects.order_by("pk").values_list()) == before
    assert len(before) == CANDLES
