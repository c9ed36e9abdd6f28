"""What Django logs of a session or a host, at times without saying of which request."""

from __future__ import annotations

import logging

import pytest

FLOOD = 100


def told(caplog: pytest.LogCaptureFixture) -> list[logging.LogRecord]:
    """Without what Django itself said, which goes no further."""
    return [record for record in caplog.records if record.name == "accounts.access"]


def test_what_belongs_to_no_request_is_told_a_few_times(caplog: pytest.LogCaptureFixture) -> None:
    for _ in range(FLOOD):
        logging.getLogger("django.security.SuspiciousSession").error("Session data\n corrupted" + "x" * 1_000)

    records = told(caplog)
    assert 0 < len(records) < FLOOD / 5
    assert {record.levelname for record in records} == {"WARNING"}
    assert records[0].getMessage().startswith("SuspiciousSession: Session data\\n corrupted")
    assert len(records[0].getMessage()) < 300


def test_a_fault_of_theirs_leaves_no_traceback(caplog: pytest.LogCaptureFixture) -> None:
    try:
        raise ValueError("evil")
    except ValueError as error:
        logging.getLogger("django.security.DisallowedHost").exception("Invalid host: %s", error)

    (record,) = told(caplog)
    assert record.exc_info is None
    assert record.getMessage() == "DisallowedHost: Invalid host: evil"
