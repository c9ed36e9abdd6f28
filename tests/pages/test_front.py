"""`/` and `/terminal`: the demo and people who are logged in get the terminal, others what the service is."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from pytest_django.fixtures import Settings

from tests.factories import make_instrument, put_quote

pytestmark = pytest.mark.django_db


@pytest.fixture
def _no_demo(settings: Settings) -> None:
    settings.DEMO = settings.PUBLIC_TERMINAL = False


def shows_terminal(client: Client, path: str) -> bool:
    names = [template.name for template in client.get(path).templates]
    assert names
    return str(names[0]).startswith("terminal/")


@pytest.mark.usefixtures("_no_demo")
def test_stranger_gets_the_front_page_and_must_log_in_for_the_terminal(client: Client) -> None:
    assert client.get("/").status_code == 200
    assert not shows_terminal(client, "/")
    answer = client.get("/terminal?symbol=EURUSD")
    assert answer.status_code == 302
    assert answer["Location"] == "/accounts/login/?next=/terminal%3Fsymbol%3DEURUSD"


@pytest.mark.usefixtures("_no_demo")
@pytest.mark.parametrize("path", ["/", "/terminal", "/terminal/"])
def test_terminal_stands_at_both_places_for_who_is_logged_in(client: Client, path: str) -> None:
    client.force_login(get_user_model().objects.create_user("trader"))
    assert shows_terminal(client, path)


@pytest.mark.parametrize("path", ["/", "/terminal"])
def test_demo_shows_strangers_the_terminal(client: Client, settings: Settings, path: str) -> None:
    settings.DEMO = settings.PUBLIC_TERMINAL = True
    assert shows_terminal(client, path)


@pytest.mark.usefixtures("_no_demo")
@pytest.mark.parametrize("is_public", [True, False])
def test_front_page_has_live_prices_only_where_they_may_be_public(
    client: Client, settings: Settings, is_public: bool
) -> None:
    settings.PUBLIC_TERMINAL = is_public
    make_instrument("EURUSD")
    put_quote("EURUSD", 1.0841, 1.08424)
    page = client.get("/").content.decode()
    assert ('data-symbol="EURUSD"' in page) is is_public
    assert ("1.0841" in page) is is_public
    assert ("$TICKWIRE_KEY" in page) is not is_public
