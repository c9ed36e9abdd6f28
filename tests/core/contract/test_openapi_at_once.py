"""The first to ask for the OpenAPI document may be many."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

from core.contract import openapi
from tests.patience import PATIENCE_S

CROWD = 12


def test_many_that_ask_first_get_the_same_document() -> None:
    openapi.make_document.cache_clear()
    barrier = Barrier(CROWD)

    def ask(_: int) -> bytes:
        barrier.wait(PATIENCE_S)
        return openapi.document().body

    with ThreadPoolExecutor(CROWD) as threads:
        bodies = list(threads.map(ask, range(CROWD)))
    assert len(set(bodies)) == 1
    assert bodies[0].startswith(b'{"openapi"')
