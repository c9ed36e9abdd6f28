"""A page that the database could not be asked for, or that could not be written, is a 503 that says so."""

from __future__ import annotations

import sqlite3

import pytest
from django.db.utils import IntegrityError, InterfaceError, OperationalError
from django.test import RequestFactory

from core.contract.errors import server_error

BROWSER = {"Accept": "text/html"}


@pytest.mark.parametrize("error", [OperationalError("database or disk is full"), InterfaceError("closed")])
@pytest.mark.parametrize("headers", [BROWSER, {}])
def test_a_database_that_fails_is_503_with_the_way_out(
    rf: RequestFactory, error: Exception, headers: dict[str, str]
) -> None:
    try:
        raise error
    except (OperationalError, InterfaceError):
        answer = server_error(rf.get("/settings/keys", headers=headers))
    assert answer.status_code == 503
    assert answer.headers["Retry-After"] == "2"
    assert "The database is not responding at the moment. Try again shortly." in answer.content.decode()


@pytest.mark.parametrize(
    "error", [IntegrityError("ours"), sqlite3.Error("not Django's"), ValueError("a bug")]
)
def test_control_a_fault_of_ours_stays_500(rf: RequestFactory, error: Exception) -> None:
    try:
        raise error
    except (IntegrityError, sqlite3.Error, ValueError):
        answer = server_error(rf.get("/settings/keys", headers=BROWSER))
    assert answer.status_code == 500
