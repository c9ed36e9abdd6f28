"""A process that publishes, cancels and closes signals, and is killed at the n-th write. It is forked each
time, so that nothing but the database outlives it. Tells each act to whoever started it, once it is done."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any
from uuid import UUID

ACTS = 16
WRITES = ("INSERT", "UPDATE", "DELETE", "SELECT pg_advisory")


class Death:
    """Comes at the n-th write. Both sides of a commit count: before it all is lost, after it nothing is."""

    def __init__(self, at: int) -> None:
        self.left = at

    def come_nearer(self) -> None:
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)

    def at_statement(self, execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith(WRITES):
            self.come_nearer()
        return execute(sql, params, many, context)

    def at_commit(self, commit: Callable[[], None]) -> Callable[[], None]:
        def committing() -> None:
            self.come_nearer()
            commit()
            self.come_nearer()

        return committing


def act(number: int, symbol: str, user_name: str, token: UUID | None) -> str:
    """Publish; every second one is closed at once, every fourth is cancelled. Returns what was done."""
    from accounts.models import User
    from core import clock
    from signals_feed.publishing.actions import cancel, close_by_hand, publish
    from signals_feed.rules import Quoted, SignalTerms

    user = User.objects.get(username=user_name)
    quote = Quoted(Decimal("1.0841"), Decimal("1.0842"), clock.now_ms())
    published = publish(SignalTerms(symbol, "buy", Decimal("1.081"), Decimal("1.09")), user, quote, token)
    # What the life before did, and did not live to tell, is done.
    if published.status == "active" and not published.cancel_reason and number % 4 == 1:
        cancel(published, reason="wrong symbol", by="alice")
    if published.status == "active" and number % 2 == 0:
        close_by_hand(published, by=user, quote=quote)
    return str(published.pk)


@contextmanager
def acknowledged(early: bool) -> Iterator[None]:
    """Too early is before the transaction is over: the control that shows that losses are seen."""
    from django.db import transaction

    if not early:
        yield
        return
    with transaction.atomic():
        yield


def story(dies_at: int, first: int, symbol: str, user_name: str, mode: str) -> None:
    from django.db import connection

    from instruments.catalogue import catalogue

    catalogue.load_now()
    death = Death(dies_at)
    connection.ensure_connection()
    connection._commit = death.at_commit(connection._commit)  # type: ignore[attr-defined]
    with connection.execute_wrapper(death.at_statement):
        for number in range(first, first + ACTS):
            with acknowledged(mode == "early"):
                token = None if mode == "no token" else UUID(int=number + 1)
                say(f"done {number} {act(number, symbol, user_name, token)}")


def say(line: str) -> None:
    os.write(1, f"{line}\n".encode())


def main(first_death: int, last_death: int, symbol: str, user_name: str, mode: str) -> None:
    """One life after the other; each begins with the act that its predecessor did not finish."""
    import django

    django.setup()
    begin = 0
    for dies_at in range(first_death, last_death + 1):
        reader, writer = os.pipe()
        pid = os.fork()
        if pid == 0:
            os.dup2(writer, 1)
            story(dies_at, begin, symbol, user_name, mode)
            os._exit(0)
        os.close(writer)
        with os.fdopen(reader) as told:
            lines = told.read().splitlines()
        _, status = os.waitpid(pid, 0)
        for line in lines:
            say(line)
        say(f"ended {dies_at} {-os.waitstatus_to_exitcode(status)}")
        begin += len(lines)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:6])
