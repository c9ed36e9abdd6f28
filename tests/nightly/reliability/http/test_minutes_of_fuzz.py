"""Almost valid bytes for minutes, where the gate sends a few hundred conversations."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

import pytest

from tests.reliability.fixtures import Tell
from tests.reliability.http.test_fuzz import CORPUS, breaks_nothing, key, server, with_known_heads
from tests.reliability.services.processes import Process

FUZZ_S = float(os.environ.get("FUZZ_SECONDS", "300"))
__all__ = ["key", "server"]


def for_seconds() -> Iterator[int]:
    ends_at, number = time.monotonic() + FUZZ_S, 0
    while time.monotonic() < ends_at:
        yield number
        number += 1


@pytest.mark.row("17, 38", "no unhandled exception, no hang, no file descriptor left open")
@pytest.mark.parametrize("is_known", [False, True], ids=["of strangers", "behind known heads"])
def test_minutes_of_almost_valid_bytes_break_nothing(
    server: Process,  # noqa: F811 - the fixture
    key: bytes,  # noqa: F811
    is_known: bool,
    seed: int,
    tell: Tell,
) -> None:
    """`FUZZ_SECONDS=600` goes on for so long."""
    heard = breaks_nothing(server, with_known_heads(key) if is_known else CORPUS, seed, for_seconds())
    tell(f"{heard.total()} conversations in {FUZZ_S:.0f} s, first answers {dict(sorted(heard.items()))}")
