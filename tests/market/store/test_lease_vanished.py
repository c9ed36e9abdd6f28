"""A process that vanishes inside a transaction, as when its host loses power: its locks stay."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from market.models import EngineState
from market.store.lease import Lease
from tests.databases.queries import count_queries
from tests.market.postgresql import in_place
from tests.patience import PATIENCE_S
from tests.reliability.services.private_servers import PrivatePostgres

pytestmark = [pytest.mark.served, pytest.mark.django_db(transaction=True)]
LOCK = "SELECT 1 FROM market_enginestate WHERE id = 1 FOR UPDATE"

# It takes what an engine and a revocation hold between a statement and their commit, and says no more.
VANISHES = f"""
import sys, django
django.setup()
from django.db import connection, transaction
from core.events.outbox import ControlEvent
with transaction.atomic(), connection.cursor() as cursor:
    ControlEvent.objects.publish("test")
    cursor.execute("{LOCK}")
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[PrivatePostgres]:
    made = PrivatePostgres(tmp_path)
    with made.running(), in_place(made.url):
        yield made


@contextmanager
def vanished(url: str, **environment: str) -> Iterator[None]:
    settings = {"DATABASE_URL": url, "REDIS_URL": "", "DJANGO_SETTINGS_MODULE": "config.settings"}
    with subprocess.Popen(
        [sys.executable, "-c", VANISHES],
        env=os.environ | settings | environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield
        process.kill()


def test_what_a_vanished_process_held_is_free_again(database: PrivatePostgres) -> None:
    EngineState.objects.create(pk=1, writer="another-host:1:abc")
    with (
        vanished(database.url, DATABASE_IDLE_TRANSACTION_S="1"),
        psycopg.connect(database.url, autocommit=True) as other,
    ):
        other.execute(f"SET lock_timeout = '{PATIENCE_S:.0f}s'")
        other.execute("UPDATE market_enginestate SET beats = 8 WHERE id = 1")
        other.execute("SELECT pg_advisory_lock(7424001)")
    assert EngineState.objects.get().beats == 8


def test_control_it_is_held_as_long_as_the_database_believes_in_it(database: PrivatePostgres) -> None:
    EngineState.objects.create(pk=1, writer="another-host:1:abc")
    with (
        vanished(database.url, DATABASE_IDLE_TRANSACTION_S="0"),
        psycopg.connect(database.url, autocommit=True) as other,
    ):
        other.execute("SET lock_timeout = '2s'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            other.execute("UPDATE market_enginestate SET beats = 8 WHERE id = 1")


def test_stand_in_waits_for_nobody_who_holds_the_lease_of_the_gone(database: PrivatePostgres) -> None:
    EngineState.objects.create(pk=1, writer="")
    with psycopg.connect(database.url) as gone:
        gone.execute(LOCK)
        with count_queries() as asked:
            assert Lease().take() is None
        gone.rollback()
    assert asked
    assert Lease().take() is not None


def test_stand_in_that_watches_a_living_writer_locks_nothing(database: PrivatePostgres) -> None:
    writer, stand_in = Lease(), Lease()
    assert writer.take() is not None
    with count_queries() as asked:
        assert stand_in.take() is None
    assert not [sql for sql in asked if "FOR UPDATE" in sql]
