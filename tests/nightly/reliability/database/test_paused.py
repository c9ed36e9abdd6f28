"""Row 53: PostgreSQL is paused, killed and started again in quick succession. What was acknowledged is there
in the end, and what needs no database goes on."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import pytest
from django.db import OperationalError

from accounts.key_text import generate_key, prefix_of
from accounts.keys.issuing import issue_key
from accounts.models import ApiKey
from tests.factories import make_account
from tests.patience import wait_until
from tests.reliability.clients.writer import Writer
from tests.reliability.fixtures import Tell
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import Installation, Process

ROUNDS, PAUSE_S = 10, 1.0


class Issuing(Writer):
    """Makes keys, each on an account of its own, and knows those of which it was told that they are there."""

    def __init__(self, installation: Installation) -> None:
        self._installation = installation
        self.acknowledged: list[str] = []

    def turn(self) -> None:
        self.has_ended.wait(0.02)
        try:
            with self._installation.orm():
                self.acknowledged.append(issue_key(make_account(), "test", by="test")[1])
        except OperationalError:
            # Refused is not acknowledged.
            return


def missing(installation: Installation, keys: list[str]) -> set[str]:
    with installation.orm(only_reads=True):
        return set(map(prefix_of, keys)) - set(ApiKey.objects.values_list("prefix", flat=True))


@pytest.mark.usefixtures("rows")
@pytest.mark.row("53", "nothing acknowledged lost, no 500")
def test_acknowledged_keys_survive_pauses_and_kills(tmp_path: Path, tell: Tell) -> None:
    database, statuses = PrivatePostgres(tmp_path, is_forgetful=False), Counter[int]()
    installation = Installation(tmp_path, database.url)

    def ask(server: Process) -> int:
        # Well formed and never seen before, so that the database has to be asked.
        status = server.ask("/api/symbols", generate_key()).status_code
        statuses[status] += 1
        return status

    with ExitStack() as running:
        running.enter_context(database.running())
        with installation.serve(1) as (server,), Issuing(installation) as issuing:
            for _ in range(ROUNDS):
                before = len(issuing.acknowledged)
                wait_until(lambda: len(issuing.acknowledged) >= before + 3)  # noqa: B023 - within its turn
                with database.paused():
                    time.sleep(PAUSE_S)
                ask(server)
                running.close()
                ask(server)
                running.enter_context(database.running())
                with database.paused():
                    time.sleep(PAUSE_S / 4)
            issuing.stop()
            wait_until(lambda: ask(server) == 401)
        lost = missing(installation, issuing.acknowledged)
        # The control: a key that is not there is missed.
        assert len(missing(installation, [generate_key()])) == 1
    told = f"{len(issuing.acknowledged)} acknowledged, lost {len(lost)}; requests {dict(statuses)}"
    tell(f"{ROUNDS} times paused, killed, started, paused: {told}")
    assert lost == set()
    assert set(statuses) <= {401, 503}
