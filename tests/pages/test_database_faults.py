"""A page that the database could not be asked for, or that could not be written, is a 503 that says so."""

from __future__ import annotations

import sqlite3

import pytest
from django.db.utils import IntegrityError, InterfaceError, OperationalError
from django.test import RequestFactory

from core.contract.errors import server_error

BROWSER = {"Accept": "text/html"}


@pytest.mark.parametrize("headers", [BROWSER, {}])
@pytest.mark.parametrize(
    ("error", "status"),
    [
        (OperationalError("database or disk is full"), 503),
        (InterfaceError("closed"), 503),
        (IntegrityError("ours"), 500),
        (sqlite3.Error("not Django's"), 500),
        (ValueError("a bug"), 500),
    ],
)
def test_a_database_that_fails_is_503_with_the_way_out_and_a_fault_of_ours_stays_500(
    rf: RequestFactory, error: Exception, status: int, headers: dict[str, str]
) -> None:
    try:
        raise error
    except type(error):
        answer = server_error(rf.get("/settings/keys", headers=headers))
    assert answer.status_code == status
    if status == 503:
        assert answer.headers["Retry-After"] == "2"
        assert "The database is not responding" in answer.content.decode()
