"""What is answered with 503 is told by a line now and then, however many ask; a bug keeps its traceback."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import psycopg
import pytest
from django.db.backends.utils import CursorWrapper
from django.db.utils import InternalError, OperationalError

from accounts.key_text import generate_key
from core.contract.errors import Overloaded, QuoteUnavailable, answer_exception, as_refusal
from core.fault_log import LOG_REPEATED_EVERY_S, UnavailableLog, unavailable
from tests.client import Server
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.services

ASKED = 50


@pytest.fixture(autouse=True)
def _nothing_told() -> Iterator[None]:
    unavailable.kinds.clear()
    yield
    unavailable.kinds.clear()


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_each_kind_is_told_at_once_and_then_every_ten_seconds_with_how_often(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clock = Clock()
    told = UnavailableLog(clock)
    for tenth in range(250):
        clock.now = tenth / 10
        told.tell("overloaded", f"req_{tenth}", OperationalError("away"))
        if tenth < 3:
            told.tell("overloaded", "req_x", Overloaded("busy", retry_after=1))
    assert caplog.messages == [
        "1 answered with 503 overloaded, the last one req_0: away",
        "1 answered with 503 overloaded, the last one req_x: busy",
        "100 answered with 503 overloaded, the last one req_100: away",
        "100 answered with 503 overloaded, the last one req_200: away",
    ]


def most_lines(began_at: float) -> int:
    """A slow machine takes longer, and may say it once more."""
    return 1 + int((time.monotonic() - began_at) / LOG_REPEATED_EVERY_S)


@pytest.mark.parametrize(
    "error",
    [OperationalError("away"), Overloaded(retry_after=1), QuoteUnavailable("No quote yet.", retry_after=1)],
)
def test_refusals_with_503_are_one_line(error: Exception, caplog: pytest.LogCaptureFixture) -> None:
    began_at = time.monotonic()
    answers = {answer_exception(error, f"req_{number}").status for number in range(1000)}
    assert answers == {503}
    assert 1 <= len(caplog.records) <= most_lines(began_at)
    assert "req_0" in caplog.messages[0]


def test_control_each_bug_is_told_with_its_traceback_once(caplog: pytest.LogCaptureFixture) -> None:
    kinds = (ValueError, KeyError, ZeroDivisionError)
    for number, kind in enumerate(kinds * 3):
        with pytest.raises(kind) as caught:
            raise kind("a bug")
        assert answer_exception(caught.value, f"req_{number}").status == 500
    assert [message.partition(":")[0] for message in caplog.messages] == ["req_0", "req_1", "req_2"]
    assert all(record.levelno == logging.ERROR and record.exc_info for record in caplog.records)


@pytest.fixture
def away(server: Server) -> Iterator[Server]:
    """The database refuses whatever it is asked."""
    execute: Callable[..., Any] = CursorWrapper.execute

    def refused(self: CursorWrapper, sql: str, params: Any = None) -> Any:
        raise OperationalError("the database is away")

    CursorWrapper.execute = refused  # type: ignore[method-assign,assignment]
    yield server
    CursorWrapper.execute = execute  # type: ignore[method-assign]


@pytest.mark.parametrize("path", ["/api/symbols", "/publishers/ada"])
def test_strangers_fill_no_log_while_the_database_is_away(
    path: str, away: Server, caplog: pytest.LogCaptureFixture
) -> None:
    with httpx.Client(base_url=away.url, timeout=PATIENCE_S) as client:

        def ask() -> int:
            return client.get(
                path, headers={"X-API-Key": generate_key(), "Cookie": "sessionid=x"}
            ).status_code

        # The service may not have noticed yet.
        assert 503 in (ask() for _ in range(1000))
        began_at = time.monotonic()
        caplog.clear()
        unavailable.kinds.clear()
        assert {ask() for _ in range(ASKED)} == {503}
    ours = [record for record in caplog.records if record.name in ("core.fault_log", "core.contract.errors")]
    by_django = [record for record in caplog.records if record.name.startswith("django")]
    assert 1 <= len(ours) <= most_lines(began_at)
    assert by_django == []
    # A line of the service's own about the outage may stand between them.
    assert len(caplog.records) < ASKED
    assert not [record for record in ours if record.exc_info]


@pytest.mark.parametrize(
    ("fault", "status", "retry_after"),
    [
        (psycopg.errors.IdleInTransactionSessionTimeout, 503, "1"),
        (psycopg.errors.ReadOnlySqlTransaction, 503, "5"),
        (psycopg.errors.InFailedSqlTransaction, 500, None),
    ],
)
def test_what_the_database_refuses_may_be_tried_again_and_a_broken_transaction_is_our_fault(
    fault: type[psycopg.Error], status: int, retry_after: str | None
) -> None:
    error = InternalError()
    error.__cause__ = fault()
    refusal = as_refusal(error)
    assert (refusal.status_code, refusal.headers.get("Retry-After")) == (status, retry_after)
