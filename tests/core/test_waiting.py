"""Which answers of a database are worth waiting for."""

from __future__ import annotations

from types import SimpleNamespace

import psycopg
import pytest
from django.db import OperationalError

from core import process


@pytest.fixture
def database(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What it says to each who asks, and then it lets them in."""
    said: list[str] = []

    def connect(**wishes: object) -> SimpleNamespace:
        if said:
            raise psycopg.OperationalError(said.pop(0))
        return SimpleNamespace(close=lambda: None)

    known = SimpleNamespace(vendor="postgresql", get_connection_params=dict)
    monkeypatch.setattr(process, "connection", known)
    monkeypatch.setattr(psycopg, "connect", connect)
    monkeypatch.setattr(process, "RETRY_S", 0.0)
    return said


def test_one_that_is_not_there_yet_is_waited_for(database: list[str]) -> None:
    database += [
        "connection failed: connection to server at 127.0.0.1, port 5432 failed: Connection refused",
        "FATAL:  the database system is starting up",
        "FATAL:  sorry, too many clients already",
        "connection to server at 127.0.0.1, port 5433 failed: session is read-only",
        "connection to server at 127.0.0.1, port 5433 failed: server is in hot standby mode",
    ]
    process.wait_for_database("The service")
    assert database == []


@pytest.mark.parametrize(
    "answer",
    [
        'FATAL:  password authentication failed for user "tickwire"',
        'FATAL:  database "nobody_made_this" does not exist',
        "FATAL:  unsupported startup parameter: options",
        "SSL error: certificate verify failed",
    ],
)
def test_a_refusal_that_stays_is_raised_at_once(database: list[str], answer: str) -> None:
    database += [answer, "never asked again"]
    with pytest.raises(OperationalError, match=answer[:20]):
        process.wait_for_database("The service")
    assert database == ["never asked again"]


def test_whoever_waits_for_so_long_is_told_why_at_the_end(database: list[str]) -> None:
    database += ["FATAL:  the database system is starting up", "never asked again"]
    with pytest.raises(OperationalError, match="is starting up"):
        process.wait_for_database("`migrate`", within_s=0)
    assert database == ["never asked again"]


def test_worker_waits_whatever_it_says(database: list[str]) -> None:
    database += ['FATAL:  database "nobody_made_this" does not exist']
    process.wait_for_database("This worker", whatever_it_says=True)
    assert database == []
