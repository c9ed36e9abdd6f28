"""SECRET_KEY and KEY_PEPPER change as docs/operate/security.md says, and nothing ends that is in use."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from django.conf import settings
from django.contrib.auth.hashers import PBKDF2PasswordHasher
from websockets.sync.client import connect
from websockets.sync.connection import Connection

from accounts.key_text import prefix_of
from accounts.models import ApiKey, User
from accounts.peppers import name_of
from tests.accounts.login.factors import AUTHENTICATE, PASSWORD, code_of
from tests.factories import make_account, make_instrument, make_key, make_tiers, make_user
from tests.patience import PATIENCE_S, wait_until
from tests.programs import services
from tests.reliability.fixtures import Tell
from tests.reliability.services.private_servers import PrivatePostgres
from tests.reliability.services.processes import Installation, Process, manage
from tests.reliability.services.supervised import supervised

pytestmark = [pytest.mark.usefixtures("rows")]
OLD = {"SECRET_KEY": settings.SECRET_KEY, "KEY_PEPPER": settings.KEY_PEPPER}
NEW: dict[str, Any] = {name: f"another {secret}" for name, secret in OLD.items()}
SYMBOL, ADA, BOB = "EURUSD", "ada", "bob"
APPS = {ADA: "JBSWY3DPEHPK3PXP", BOB: "KRSXG5CTMVRXEZLU"}


def with_fallbacks(current: dict[str, str], others: dict[str, str]) -> dict[str, Any]:
    return current | {f"{name}_FALLBACKS": secret for name, secret in others.items()}


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Installation]:
    """None that others use: their keys and factors would count, and change."""
    database = PrivatePostgres(tmp_path)
    with database.running(), services.redis(tmp_path) as redis:
        yield Installation(tmp_path, database.url, redis)


class Before(NamedTuple):
    """What there was before the secrets changed."""

    used: str
    unused: str
    codes: list[str]


@pytest.fixture
def before(own: Installation) -> Before:
    with own.orm():
        make_tiers()
        make_instrument(SYMBOL)
        people = {name: make_user(name, PASSWORD, email=f"{name}@example.com") for name in APPS}
        # The service does not know the quick hash of tests.
        hashed = PBKDF2PasswordHasher().encode(PASSWORD, "a salt of some letters")
        User.objects.filter(username__in=people).update(password=hashed)
        for name, user in people.items():
            TOTP.activate(user, APPS[name])
        account = make_account(people[BOB])
        codes = RecoveryCodes.activate(people[ADA]).get_unused_codes()
        return Before(make_key(account), make_key(account), codes)


def log_in(server: Process, name: str, code: str = "") -> httpx.Client:
    """With the second factor: a code for recovery, or else what the app shows."""
    for _ in range(3):
        browser = httpx.Client(base_url=server.url, timeout=PATIENCE_S, follow_redirects=True)
        submit(browser, "/accounts/login/", login=name, password=PASSWORD)
        submit(browser, AUTHENTICATE, code=code or code_of(APPS[name]))
        if is_in(browser, server):
            return browser
        # The app showed the next code meanwhile.
        browser.close()
    raise AssertionError(f"{name} is not let in")


def submit(browser: httpx.Client, path: str, **fields: str) -> None:
    browser.get(path)
    browser.post(path, data=fields | {"csrfmiddlewaretoken": browser.cookies["csrftoken"]})


def is_in(browser: httpx.Client, server: Process) -> bool:
    answer = browser.get(f"{server.url}/settings/keys", follow_redirects=False)
    return answer.status_code == 200


def works(server: Process, key: str) -> bool:
    return status_of(server, key) == 200


def status_of(server: Process, key: str) -> int:
    statuses = list[int]()

    def is_answered() -> bool:
        statuses.append(server.ask("/api/limits", key).status_code)
        return statuses[-1] != 503

    # The database of a machine that is busy with other things takes its time.
    wait_until(is_answered)
    return statuses[-1]


@contextmanager
def stream(server: Process, key: str) -> Iterator[Connection]:
    with connect(f"ws://127.0.0.1:{server.port}/ws/market", open_timeout=PATIENCE_S) as socket:
        socket.send(json.dumps({"action": "subscribe", "symbols": [SYMBOL], "api_key": key}))
        yield socket


def is_open(socket: Connection) -> bool:
    return socket.ping().wait(PATIENCE_S) and socket.close_code is None


def pepper_of(installation: Installation, key: str) -> str:
    with installation.orm(only_reads=True):
        return ApiKey.objects.get(prefix=prefix_of(key)).pepper_name


def assert_needed_by(key: str, said: str) -> None:
    assert "Second factors: 3 encrypted again, 0 were up to date." in said
    assert "KEY_PEPPER_FALLBACKS are still needed by 1 keys." in said
    assert prefix_of(key) in said


@pytest.mark.row("31, rotated secrets", "a rotation ends no key, session, second factor or stream")
def test_rotating_secrets_across_processes_ends_nothing(
    own: Installation, before: Before, tell: Tell
) -> None:
    told, changed = with_fallbacks(OLD, NEW), with_fallbacks(NEW, OLD)
    with ExitStack() as running:
        old = running.enter_context(ExitStack())
        first = old.enter_context(own.web_process(**told))
        socket = old.enter_context(stream(first, before.used))
        ada = running.enter_context(closing(log_in(first, ADA, before.codes[0])))

        second = running.enter_context(own.web_process(**changed))
        # Whoever came before goes on at both, and whoever comes now as well.
        for server in (second, first, second):
            assert works(server, before.used)
            assert is_in(ada, server)
        log_in(second, ADA).close()
        issued = manage(own.environment(**changed), "issue_key", BOB).stdout.strip()
        assert works(first, issued)
        assert works(second, issued)
        newer = running.enter_context(stream(second, before.used))
        wait_until(lambda: pepper_of(own, before.used) == name_of(NEW["KEY_PEPPER"]))
        assert works(first, before.used)
        assert is_open(socket)
        assert is_in(ada, second)

        # As long as it runs, it hashes back what it knows.
        old.close()
        in_use = (before.used, issued)
        wait_until(lambda: {pepper_of(own, key) for key in in_use} == {name_of(NEW["KEY_PEPPER"])})
        said = manage(own.environment(**changed), "rotate_secrets").stdout
        assert_needed_by(before.unused, said)
        assert is_open(newer)
        last = running.enter_context(own.web_process(**NEW))
        keys = (before.used, issued, before.unused)
        assert [status_of(last, key) for key in keys] == [200, 200, 401], last.log.read_text()[-2000:]
        assert is_in(ada, last)
        log_in(last, ADA, before.codes[1]).close()
        log_in(last, BOB).close()
    tell("ended: 0; the unused key was reported")


@pytest.mark.row("31, rotated secrets", "no request refused while workers are replaced")
def test_replaced_workers_read_the_secret_files_again(own: Installation, tmp_path: Path, tell: Tell) -> None:
    with own.orm():
        make_tiers()
        key = make_key(make_account())
    files = {name: tmp_path / name.lower() for name in with_fallbacks(OLD, NEW)}
    given: dict[str, Any] = {f"{name}_FILE": str(path) for name, path in files.items()}

    def write(secrets: dict[str, str]) -> None:
        for name, secret in secrets.items():
            files[name].write_text(f"{secret}\n")

    write(with_fallbacks(OLD, NEW))
    refused = 0
    with supervised(own, **given, SECRET_KEY="", KEY_PEPPER="") as host:
        write(with_fallbacks(NEW, OLD))
        before = set(host.workers)
        host.send(signal.SIGHUP)
        while before & set(host.workers) or len(host.serving) != 2:
            with httpx.Client(timeout=PATIENCE_S) as client:
                answer = client.get(f"{host.server.url}/api/limits", headers={"X-API-Key": key})
            refused += answer.status_code != 200
        assert works(host.server, key)
        wait_until(lambda: pepper_of(own, key) == name_of(NEW["KEY_PEPPER"]))
    tell(f"refused: {refused}")
    assert refused == 0
