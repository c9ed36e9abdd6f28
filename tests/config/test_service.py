"""The parts of a process start one after the other, and stop in the other order."""

from __future__ import annotations

import asyncio

import pytest

from config import asgi


def test_a_part_that_fails_to_stop_keeps_none_of_the_others_from_it(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    stopped: list[str] = []

    def fail() -> None:
        raise OSError("No space left on device")

    parts = ((None, lambda: stopped.append("first")), (None, fail), (None, lambda: stopped.append("last")))
    monkeypatch.setattr(asgi, "BACKGROUND", parts)

    asyncio.run(asgi.Service().stop())

    assert stopped == ["last", "first"]
    assert "could not stop in order" in caplog.text
