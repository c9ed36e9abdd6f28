"""A page that the database could not be asked for is a 503 that says so, and only staff may send what is
longer than a page takes."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Iterator

import httpx
import pytest
from django.db.utils import DatabaseError, IntegrityError, InterfaceError, OperationalError
from django.test import RequestFactory

from core.contract.errors import Overloaded, server_error
from pages import handler
from tests.client import Server
from tests.factories import make_user
from tests.patience import PATIENCE_S
from tests.staff import staff_client

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


PATH = "/admin/instruments/instrument/import/"


@pytest.fixture
def server(transactional_db: None) -> Iterator[Server]:
    with Server() as running:
        yield running


def send(server: Server, session: str = "", **headers: str) -> httpx.Response:
    """A body that does not say how long it is."""
    cookies = {"sessionid": session} if session else {}
    with httpx.Client(base_url=server.url, cookies=cookies, timeout=PATIENCE_S) as client:
        return client.post(PATH, content=iter((b"a=b",)), headers=headers)


def test_stranger_is_refused_and_staff_are_heard(server: Server) -> None:
    boss = staff_client(make_user(is_staff=True, is_superuser=True))
    assert send(server).json()["error"]["code"] == "too_large"
    assert send(server, "a" * 32).status_code == 413
    # Heard, and then asked for its token against forgery.
    assert send(server, boss.cookies["sessionid"].value).status_code == 403


@pytest.mark.parametrize("error", [OperationalError("away"), Overloaded(retry_after=1)])
def test_database_that_is_away_is_503(
    server: Server, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    monkeypatch.setattr(handler, "is_from_user", raising(error))
    answer = send(server, "a" * 32)
    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "overloaded")
    assert answer.headers["Retry-After"]
    assert send(server, "a" * 32, Accept="text/html").headers["Content-Type"].startswith("text/html")


def test_forged_host_is_refused_before_anybody_is_asked(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(handler, "is_from_user", raising(DatabaseError("asked")))
    assert send(server, "a" * 32, Host="elsewhere.example").status_code == 400


def test_it_is_asked_in_a_thread_of_the_pages(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """The API has those of its own, which nobody takes without a key."""
    threads = []
    monkeypatch.setattr(
        handler, "is_from_user", lambda scope, staff: threads.append(threading.current_thread().name)
    )
    assert send(server, "a" * 32).status_code == 413
    assert threads[0].startswith("pages-")


def raising(error: Exception) -> object:
    def raise_it(scope: object, *, staff: bool) -> bool:
        raise error

    return raise_it
