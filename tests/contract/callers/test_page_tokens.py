"""Page tokens as keys of REST, and their end with the session."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta

import pytest
import time_machine
from django.utils import timezone

from accounts.limits.tiers import save_user_access
from accounts.models import Account, User
from tests.accounts.browser import logged_in, token_of
from tests.client import Api, Server
from tests.contract.answers import PATHS, refusal
from tests.factories import make_account, make_user
from tests.patience import wait_until


@pytest.fixture
def account(shared: Api) -> Account:
    return make_account(make_user(password="a long walk 7"), tier="roomy")


@pytest.fixture
def api(shared_server: Server) -> Iterator[Api]:
    with Api(shared_server, "") as client:
        yield client


def opens(api: Api, token: str) -> bool:
    return api.ask("/api/symbols", key=token).status_code == 200


@pytest.mark.parametrize("path", [path for path in PATHS if path != "/api/archive"])
def test_token_opens_every_path_but_the_archive_as_a_key_does(
    api: Api, shared: Api, account: Account, path: str
) -> None:
    token = token_of(logged_in(account.user))
    assert api.ask(path, key=token).status_code == shared.ask(path).status_code


def test_token_that_has_ended_is_an_invalid_key(api: Api, account: Account) -> None:
    with time_machine.travel(timezone.now() - timedelta(seconds=301)):
        ended = token_of(logged_in(account.user))
    refusal(api.ask("/api/symbols", key=ended), 401, "invalid_api_key")


def test_token_ends_also_while_it_is_in_use(api: Api, account: Account) -> None:
    with time_machine.travel(timezone.now() - timedelta(seconds=299)):
        ending = token_of(logged_in(account.user))
    opens(api, ending)
    wait_until(lambda: not opens(api, ending))


@pytest.mark.parametrize("changed", ["lead", "signature", "session"])
def test_forged_token_is_an_invalid_key(api: Api, account: Account, changed: str) -> None:
    token = token_of(logged_in(account.user))
    forged = {
        "lead": token.removeprefix("pt_"),
        "signature": token[:-2] + ("aa" if token[-2:] != "aa" else "bb"),
        "session": token.replace("pt_", "pt_1", 1),
    }[changed]
    refusal(api.ask("/api/symbols", key=forged), 401, "invalid_api_key")


@pytest.mark.parametrize("ending", ["logout", "new password", "locked out"])
def test_token_ends_with_its_session(api: Api, account: Account, ending: str) -> None:
    user = account.user
    client = logged_in(user)
    token, other = token_of(client), token_of(logged_in(user))
    assert opens(api, token)
    assert opens(api, other)
    if ending == "logout":
        client.post("/accounts/logout/")
    elif ending == "new password":
        user.set_password("a longer walk 8")
        user.save()
    else:
        User.objects.filter(pk=user.pk).update(is_active=False)
        save_user_access(account, by="test")
    wait_until(lambda: not opens(api, token))
    assert opens(api, other) is (ending == "logout")


@pytest.mark.parametrize("headers", ["X-Ingest-Key", "Authorization"])
def test_token_sends_no_ticks(api: Api, account: Account, headers: str) -> None:
    token = token_of(logged_in(account.user))
    value = token if headers == "X-Ingest-Key" else f"Bearer {token}"
    refusal(api.post("/ingest/ticks", json=[], headers={headers: value}), 401, "invalid_ingest_key")


def test_token_in_the_address_opens_nothing(api: Api, account: Account) -> None:
    token = token_of(logged_in(account.user))
    refusal(api.get(f"/api/symbols?api_key={token}"), 401, "missing_api_key")


def test_no_log_shows_a_token(api: Api, account: Account, caplog: pytest.LogCaptureFixture) -> None:
    ours = ("accounts", "config", "django", "market")
    client = logged_in(account.user)
    token = token_of(client)
    with caplog.at_level(logging.DEBUG), caplog.at_level(logging.INFO, "accounts.access"):
        for key in (token, token[:-1]):
            api.ask("/api/symbols", key=key)
            api.get(f"/api/symbols?api_key={key}")
        client.post("/accounts/logout/")
    # The client's own log lines tell the whole address; ours are meant.
    logged = "".join(str(record.__dict__) for record in caplog.records if record.name.startswith(ours))
    assert "/api/symbols" in logged
    assert token[:-1] not in logged
