"""The demo's staff come in by a link, and by nothing else: least of all by where they seem to call from."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.test import Client
from django.utils import timezone
from pytest_django.fixtures import Settings

from accounts.models import User
from demo.login import fresh_link, issue_link
from demo.people import STAFF, seed_people
from tests.factories import make_account, make_user

pytestmark = pytest.mark.django_db

# What a service sees of everybody behind `proxy_pass http://127.0.0.1:8000;` on its own machine.
HERE: dict[str, Any] = {"headers": {"host": "127.0.0.1:8000"}, "SERVER_NAME": "127.0.0.1"}


@pytest.fixture(autouse=True)
def _demo(settings: Settings) -> None:
    settings.DEMO = True
    settings.ALLOWED_HOSTS = ["127.0.0.1"]
    seed_people()


def link() -> str:
    made = fresh_link()
    assert made is not None
    return made


def opens_the_back_office(client: Client) -> bool:
    return client.get("/admin/").status_code == 200


def test_link_lets_the_staff_into_the_back_office_and_looking_does_not_use_it_up() -> None:
    client, address = Client(**HERE), link()
    assert "Log in" in client.get(address).text
    assert client.head(address).status_code == 200
    assert not opens_the_back_office(client)
    answer = client.post(address)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/admin/")
    assert opens_the_back_office(client)
    assert "this one" in client.get("/accounts/sessions/").text
    # Who plainly comes from elsewhere gets nothing of it.
    assert client.get("/admin/", headers={"X-Forwarded-For": "192.0.2.1"}).status_code == 302


def test_link_is_good_once_for_a_quarter_of_an_hour_and_until_there_is_a_newer_one() -> None:
    first, address = link(), link()
    assert Client(**HERE).post(first).status_code == 410
    assert Client(**HERE).post(address).status_code == 302
    late = Client(**HERE)
    assert late.post(address).status_code == 410
    assert "demo_login" in late.get(address).text
    assert not opens_the_back_office(late)
    # It ends after a quarter of an hour.
    now = timezone.now()
    with time_machine.travel(now, tick=False) as clock:
        address = link()
        clock.move_to(now + timedelta(minutes=15, seconds=1))
        assert Client(**HERE).post(address).status_code == 410


def test_links_of_another_kind_open_nothing(settings: Settings) -> None:
    address, boss = link(), make_user("boss", is_staff=True, is_superuser=True)
    make_account(boss)
    altered = address[:-1] + ("A" if address[-1] != "A" else "B")
    for wrong in (altered, "/demo-login/x", "/demo-login/a:b:c", issue_link(boss)):
        assert Client(**HERE).post(wrong).status_code == 410
    settings.DEMO = False
    assert Client(**HERE).post(address).status_code == 404


def test_form_of_a_link_needs_its_csrf_token() -> None:
    client, address = Client(enforce_csrf_checks=True, **HERE), link()
    assert client.post(address).status_code == 403
    token = re.search(r'csrfmiddlewaretoken" value="(\w+)"', client.get(address).text)
    assert token is not None
    assert client.post(address, {"csrfmiddlewaretoken": token[1]}).status_code == 302


def test_staff_have_no_password_not_even_that_of_an_earlier_version() -> None:
    staff = User.objects.get(username=STAFF)
    assert not staff.has_usable_password()
    staff.set_password("printed by the banner")
    staff.save()
    seed_people()
    assert not User.objects.get(username=STAFF).has_usable_password()


def test_session_of_demo_staff_that_began_otherwise_needs_a_second_factor() -> None:
    client = Client(**HERE)
    client.force_login(User.objects.get(username=STAFF))
    assert not opens_the_back_office(client)


def test_session_that_began_with_a_link_ends_with_the_demo(settings: Settings) -> None:
    client = Client(**HERE)
    client.post(link())
    assert client.get("/settings/keys").status_code == 200
    settings.DEMO = False
    assert not opens_the_back_office(client)
    assert client.get("/settings/keys").status_code == 302
