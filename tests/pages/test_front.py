"""`/` and `/terminal`: the demo and people who are logged in get the terminal, others what the service is."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from pytest_django.fixtures import SettingsWrapper

pytestmark = pytest.mark.django_db
TERMINAL = b'id="watchlist"'


@pytest.fixture
def outside_the_demo(settings: SettingsWrapper) -> None:
    settings.DEMO = False


def shows_terminal(client: Client, path: str) -> bool:
    return TERMINAL in client.get(path).content


@pytest.mark.usefixtures("outside_the_demo")
def test_stranger_gets_the_front_page_and_must_log_in_for_the_terminal(client: Client) -> None:
    assert client.get("/").status_code == 200
    assert not shows_terminal(client, "/")
    answer = client.get("/terminal?symbol=EURUSD")
    assert answer.status_code == 302
    assert answer["Location"] == "/accounts/login/?next=/terminal%3Fsymbol%3DEURUSD"


@pytest.mark.usefixtures("outside_the_demo")
@pytest.mark.parametrize("path", ["/", "/terminal", "/terminal/"])
def test_terminal_stands_at_both_places_for_who_is_logged_in(client: Client, path: str) -> None:
    client.force_login(get_user_model().objects.create_user("trader"))
    assert shows_terminal(client, path)


@pytest.mark.parametrize("path", ["/", "/terminal"])
def test_demo_shows_strangers_the_terminal(client: Client, settings: SettingsWrapper, path: str) -> None:
    settings.DEMO = True
    assert shows_terminal(client, path)
