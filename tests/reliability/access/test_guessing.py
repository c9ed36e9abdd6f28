"""Row 64: who guesses passwords is locked out, and the owner is not."""

from __future__ import annotations

import re
from collections import Counter
from itertools import count
from pathlib import Path

import httpx
import pytest
from django.core.mail import EmailMessage
from django.test import Client

from accounts.models import User
from tests.factories import make_user
from tests.patience import PATIENCE_S
from tests.reliability.fixtures import Tell, sqlite_in

PASSWORD, LOGIN = "a long walk 7", "/accounts/login/"
ATTACKER, HOME, NEW_PLACE = "192.0.2.1", "198.51.100.7", "198.51.100.8"
AN_HOUR = 100
pytestmark = [
    pytest.mark.django_db,
    pytest.mark.row(
        "64", "no guess accepted after the lock, no owner locked out, the same text for unknown names"
    ),
]


@pytest.fixture(autouse=True)
def owner() -> User:
    return make_user("ada", PASSWORD)


def at(address: str) -> Client:
    return Client(REMOTE_ADDR=address)


def log_in(client: Client, password: str, name: str = "ada") -> bool:
    return client.post(LOGIN, {"login": name, "password": password}).status_code == 302


def guess(client: Client, times: int, name: str = "ada") -> int:
    """How many were accepted."""
    return sum(log_in(client, f"wrong {number}", name) for number in range(times))


def text_after(client: Client, name: str) -> str:
    """What is said to a wrong password, without what differs from answer to answer."""
    said = client.post(LOGIN, {"login": name, "password": "wrong"}).text.replace(name, "NAME")
    return re.sub(r'csrfmiddlewaretoken" value="\w+"', "", said)


def test_five_failures_lock_the_address_but_not_the_owner(tell: Tell) -> None:
    attacker = at(ATTACKER)
    assert guess(attacker, 5) == 0
    accepted = sum(log_in(attacker, PASSWORD) for _ in range(10))
    shut_out = sum(not log_in(at(HOME), PASSWORD) for _ in range(3))
    tell(f"accepted after the lock: {accepted} of 10; owner locked out: {shut_out} of 3")
    assert (accepted, shut_out) == (0, 0)


def test_control_before_the_fifth_failure_the_password_works() -> None:
    attacker = at(ATTACKER)
    guess(attacker, 4)
    assert log_in(attacker, PASSWORD)


def test_failures_by_username_and_by_email_count_together() -> None:
    attacker = at(ATTACKER)
    guess(attacker, 3)
    guess(attacker, 2, "ADA@example.com")
    assert not log_in(attacker, PASSWORD)


def test_unknown_and_existing_names_get_the_same_answers() -> None:
    told = []
    for name in ("ada", "nobody"):
        client = at(ATTACKER)
        client.get(LOGIN)
        told.append([text_after(client, name) for _ in range(7)])
    assert told[0] == told[1]
    assert told[0][0] != told[0][-1]
    assert "passkey" in told[0][-1]


def lock_everywhere() -> Counter[bool]:
    """A hundred failures from many addresses; how often the right password opened after that."""
    addresses = (f"203.0.113.{number}" for number in count(1))
    for _ in range(AN_HOUR // 5 - 1):
        guess(at(next(addresses)), 5)
    # A control: it is not locked any sooner.
    assert log_in(at(next(addresses)), PASSWORD)
    guess(at(next(addresses)), 5)
    return Counter(log_in(at(next(addresses)), PASSWORD) for _ in range(5))


def test_a_hundred_failures_in_an_hour_lock_the_password_except_on_known_devices(tell: Tell) -> None:
    at_home = at(HOME)
    assert log_in(at_home, PASSWORD)
    at_home.post("/accounts/logout/")
    opened = lock_everywhere()
    is_in = log_in(at_home, PASSWORD)
    tell(
        f"after {AN_HOUR} failures: right password from elsewhere accepted: {opened[True]} of 5;"
        f" from the known device: {int(is_in)} of 1"
    )
    assert opened == {False: 5}
    assert is_in


def test_a_mailed_link_unlocks_an_account_with_a_locked_password(mailoutbox: list[EmailMessage]) -> None:
    assert lock_everywhere() == {False: 5}
    client = at(NEW_PLACE)
    client.post("/accounts/password/reset/", {"email": "ada@example.com"})
    link = re.search(r"http://testserver(\S+)", str(mailoutbox[0].body))
    assert link is not None
    form = client.get(link[1], follow=True).redirect_chain[-1][0]
    client.post(form, {"password1": "a longer walk 8", "password2": "a longer walk 8"})
    assert client.get("/settings/keys").status_code == 200


def test_a_known_device_gets_no_exemption_for_other_accounts() -> None:
    make_user("eve", PASSWORD)
    client = at(ATTACKER)
    assert log_in(client, PASSWORD, "eve")
    client.post("/accounts/logout/")
    guess(client, 5)
    assert not log_in(client, PASSWORD)


def test_forged_forwarding_headers_do_not_evade_the_lock(tmp_path: Path) -> None:
    installation = sqlite_in(tmp_path)
    with installation.orm():
        make_user("ada", PASSWORD)
    with (
        installation.web_process() as server,
        httpx.Client(base_url=server.url, timeout=PATIENCE_S) as client,
    ):
        statuses = []
        for number in range(7):
            token = re.search(r'csrfmiddlewaretoken" value="(\w+)"', client.get(LOGIN).text)
            assert token is not None
            password = PASSWORD if number == 6 else "wrong"
            fields = {"login": "ada", "password": password, "csrfmiddlewaretoken": token[1]}
            forwarded = {"X-Forwarded-For": f"203.0.113.{number}", "Referer": server.url}
            statuses.append(client.post(LOGIN, data=fields, headers=forwarded).status_code)
    assert 302 not in statuses
