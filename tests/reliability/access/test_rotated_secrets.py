"""SECRET_KEY and KEY_PEPPER change as docs/operate/security.md says, and nothing ends that is in use. Second
factors and each step by itself are shown in tests/accounts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from websockets.sync.connection import Connection

from accounts.key_text import prefix_of
from accounts.models import ApiKey
from accounts.secrets import name_of
from tests.factories import make_account, make_instrument, make_key, make_tiers, make_user
from tests.patience import PATIENCE_S, wait_until
from tests.programs import services
from tests.reliability.clients.person import log_in
from tests.reliability.clients.subscribed import asking
from tests.reliability.fixtures import Tell
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import Installation, Process, http, manage

SYMBOL, BOB = "EURUSD", "bob"
OLD = {"SECRET_KEY": settings.SECRET_KEY, "KEY_PEPPER": settings.KEY_PEPPER}
NEW: dict[str, Any] = {name: f"another {secret}" for name, secret in OLD.items()}


def with_fallbacks(current: dict[str, str], others: dict[str, str]) -> dict[str, Any]:
    return current | {f"{name}_FALLBACKS": secret for name, secret in others.items()}


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Installation]:
    """None that others use: their keys would count, and change."""
    database = PrivatePostgres(tmp_path)
    with database.running(), services.redis(tmp_path) as redis:
        yield Installation(tmp_path, database.url, redis)


def is_in(session: str, server: Process) -> bool:
    cookies = {"Cookie": f"{settings.SESSION_COOKIE_NAME}={session}"}
    return http.get(f"{server.url}/settings/keys", headers=cookies).status_code == 200


def status_of(server: Process, key: str) -> int:
    # The database of a machine that is busy with other things takes its time.
    wait_until(lambda: server.ask("/api/limits", key).status_code != 503)
    return server.ask("/api/limits", key).status_code


def is_open(socket: Connection) -> bool:
    return socket.ping().wait(PATIENCE_S) and socket.close_code is None


def pepper_of(installation: Installation, key: str) -> str:
    with installation.orm(only_reads=True):
        return ApiKey.objects.get(prefix=prefix_of(key)).pepper_name


@pytest.mark.row("31, rotated secrets", "a rotation ends no key, session or stream")
def test_rotating_secrets_across_processes_ends_nothing(own: Installation, tell: Tell) -> None:
    told, changed = with_fallbacks(OLD, NEW), with_fallbacks(NEW, OLD)
    with own.orm():
        make_tiers()
        make_instrument(SYMBOL)
        account = make_account(make_user(BOB))
        used, unused, session = make_key(account), make_key(account), log_in(account.user)
    with ExitStack() as running:
        old = running.enter_context(ExitStack())
        first = old.enter_context(own.web_process(**told))
        socket = old.enter_context(asking(first.port, used, [SYMBOL]))
        second = running.enter_context(own.web_process(**changed))
        # Whoever came before goes on at both, and whoever comes now as well.
        for server in (second, first, second):
            assert status_of(server, used) == 200
            assert is_in(session, server)
        issued = manage(own.environment(**changed), "issue_key", BOB).stdout.strip()
        assert (status_of(first, issued), status_of(second, issued)) == (200, 200)
        newer = running.enter_context(asking(second.port, used, [SYMBOL]))
        wait_until(lambda: pepper_of(own, used) == name_of(NEW["KEY_PEPPER"]))
        assert status_of(first, used) == 200
        assert is_open(socket)

        # As long as it runs, it hashes back what it knows.
        old.close()
        in_use = {used, issued}
        wait_until(lambda: {pepper_of(own, key) for key in in_use} == {name_of(NEW["KEY_PEPPER"])})
        said = manage(own.environment(**changed), "rotate_secrets").stdout
        assert "KEY_PEPPER_FALLBACKS are still needed by 1 keys." in said
        assert prefix_of(unused) in said
        assert is_open(newer)
        last = running.enter_context(own.web_process(**NEW))
        assert [status_of(last, key) for key in (used, issued, unused)] == [200, 200, 401]
        assert is_in(session, last)
    tell("ended: 0; the unused key was reported")
