"""How soon the clients come back: Python, TypeScript and the terminal page."""

from __future__ import annotations

import time

from tests.clients.conftest import built as built
from tests.clients.conftest import modules as modules
from tests.clients.returning import reply, says, serving
from tests.clients.test_returning import Watch
from tests.clients.test_returning import watch as watch


def test_who_is_ended_after_each_reply_comes_back_ever_later(watch: Watch) -> None:
    answer = reply("A", "B", epoch="e", positions={"A": 1, "B": 1})
    moments = list[float]()
    with serving(says(answer, then=4500)) as service, watch(service.url):
        for _ in range(4):
            service.asked()
            moments.append(time.monotonic())
    waits = [later - earlier for earlier, later in zip(moments[:-1], moments[1:], strict=True)]
    # The third wait is half of a second at least, the first three quarters of that at most.
    assert waits[2] >= 0.5
