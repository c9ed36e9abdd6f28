"""What is made at most once in so many seconds."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from core.cached import OLD_S, Cached
from core.contract.errors import Overloaded
from tests.patience import PATIENCE_S


def test_while_it_is_made_again_the_others_get_the_last() -> None:
    kept, begun, go_on = Cached[int](), threading.Event(), threading.Event()

    def make(last: int | None) -> int:
        begun.set()
        go_on.wait(PATIENCE_S)
        return (last or 0) + 1

    assert kept.get(PATIENCE_S, lambda _: 1) == kept.get(PATIENCE_S, lambda _: 2) == 1
    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(kept.get, -1, make)
        assert begun.wait(PATIENCE_S)
        assert kept.get(-1, make) == 1
        go_on.set()
        assert making.result(PATIENCE_S) == 2


def test_what_is_much_older_is_given_to_nobody() -> None:
    kept, begun, go_on = Cached[int](), threading.Event(), threading.Event()

    def make(last: int | None) -> int:
        begun.set()
        go_on.wait(PATIENCE_S)
        return 2

    kept.get(PATIENCE_S, lambda _: 1)
    kept.made_at -= OLD_S
    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(kept.get, 0, make)
        assert begun.wait(PATIENCE_S)
        with pytest.raises(Overloaded):
            kept.get(0, make, 0)
        go_on.set()
        assert making.result(PATIENCE_S) == 2


def test_who_would_wait_too_long_for_the_first_is_refused() -> None:
    kept, begun, go_on = Cached[int](), threading.Event(), threading.Event()

    def make(last: int | None) -> int:
        begun.set()
        go_on.wait(PATIENCE_S)
        return 1

    with ThreadPoolExecutor(1) as pool:
        making = pool.submit(kept.get, PATIENCE_S, make)
        assert begun.wait(PATIENCE_S)
        with pytest.raises(Overloaded):
            kept.get(PATIENCE_S, make, 0)
        go_on.set()
        assert making.result(PATIENCE_S) == 1
