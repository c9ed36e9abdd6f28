"""Sessions: where they begin, where they end, and who may not have one."""

import re

import pytest
from django.contrib.sessions.models import Session
from django.core.mail import EmailMessage
from django.test import Client
from pytest_django.fixtures import Settings

from accounts.models import User
from tests.factories import make_account, make_user

pytestmark = pytest.mark.django_db
PASSWORD = "a long walk 7"
NEW_PASSWORD = "a longer walk 8"
KEYS = "/settings/keys"


@pytest.fixture
def user() -> User:
    return make_user("ada", PASSWORD)


@pytest.fixture
def demo_user(settings: Settings) -> User:
    settings.DEMO = True
    settings.ALLOWED_HOSTS = ["127.0.0.1", "tickwire.example"]
    user = make_user("demo", PASSWORD)
    make_account(user, is_demo=True)
    return user


def here() -> Client:
    return Client(headers={"host": "127.0.0.1:8000"}, SERVER_NAME="127.0.0.1")


def elsewhere() -> Client:
    return Client(headers={"host": "tickwire.example"}, REMOTE_ADDR="192.0.2.7")


def log_in(client: Client, name: str = "ada", password: str = PASSWORD) -> int:
    return client.post("/accounts/login/", {"login": name, "password": password}).status_code


def is_logged_in(client: Client) -> bool:
    return client.get(KEYS).status_code == 200


def with_session_of(client: Client) -> Client:
    other = Client()
    other.cookies["sessionid"] = client.cookies["sessionid"].value
    return other


@pytest.mark.parametrize(
    ("asked", "led"), [("/accounts/email/", "/accounts/email/"), ("https://evil.example/", KEYS)]
)
@pytest.mark.parametrize("login", ["ada", "ada@example.com"])
def test_login_takes_the_name_or_the_address_and_leads_to_no_other_host(
    user: User, login: str, asked: str, led: str
) -> None:
    client, fields = Client(), {"login": login, "password": PASSWORD, "next": asked}
    assert client.post("/accounts/login/", fields)["Location"] == led
    assert is_logged_in(client)
    User.objects.update(is_active=False)
    assert not is_logged_in(client)
    log_in(client, login)
    assert not is_logged_in(client)


def test_a_session_from_before_the_login_is_worth_nothing_after_it(user: User) -> None:
    client = Client()
    session = client.session
    session["planted"] = "yes"
    session.save()
    log_in(client)
    assert client.cookies["sessionid"].value != session.session_key
    assert not Session.objects.filter(session_key=session.session_key).exists()


def test_session_cookie_is_out_of_reach_for_scripts_and_other_sites(user: User) -> None:
    client = Client()
    client.get("/accounts/login/")
    log_in(client)
    flags = [(client.cookies[name]["httponly"], client.cookies[name]["samesite"]) for name in client.cookies]
    assert set(flags) == {(True, "Lax")}
    assert {"sessionid", "csrftoken"} <= set(client.cookies)


def test_logging_out_ends_the_session_for_every_copy_of_its_cookie(user: User) -> None:
    client = Client()
    log_in(client)
    copy = with_session_of(client)
    client.get("/accounts/logout/")
    assert is_logged_in(copy)
    assert client.post("/accounts/logout/")["Location"] == "/accounts/login/"
    assert not is_logged_in(copy)


def test_changing_the_password_logs_other_browsers_out(user: User) -> None:
    client, other = Client(), Client()
    log_in(client)
    log_in(other)
    old = with_session_of(client)
    fields = {"oldpassword": PASSWORD, "password1": NEW_PASSWORD, "password2": NEW_PASSWORD}
    assert client.post("/accounts/password/change/", fields).status_code == 302
    assert is_logged_in(client)
    assert not is_logged_in(other)
    assert not is_logged_in(old)


def test_resetting_the_password_by_mail_logs_every_browser_out(
    user: User, mailoutbox: list[EmailMessage]
) -> None:
    old, client = Client(), Client()
    log_in(old)
    assert "Check your email" in reset(client, "ada@example.com")
    link = re.search(r"http://testserver(\S+)", str(mailoutbox[0].body))
    assert link is not None
    form = client.get(link[1], follow=True)
    assert link[1] not in form.text
    done = client.post(
        form.wsgi_request.path, {"password1": NEW_PASSWORD, "password2": NEW_PASSWORD}, follow=True
    )
    # Whoever has the mail is let in: the password may be locked by somebody who guesses.
    assert done.redirect_chain[-1] == (KEYS, 302)
    assert is_logged_in(client)
    assert not is_logged_in(old)
    assert log_in(Client(), password=NEW_PASSWORD) == 302
    assert "This link no longer works" in Client().get(link[1], follow=True).text


def test_used_confirmation_sends_who_is_logged_in_to_their_addresses(user: User) -> None:
    client, link = Client(), "/accounts/confirm-email/of-before/"
    assert "log in to have a new link" in client.get(link).text
    log_in(client)
    own = client.get(link).text
    assert "log in to have a new link" not in own
    assert "Your email addresses" in own


def test_resetting_does_not_tell_whether_an_account_exists(user: User) -> None:
    assert reset(Client(), "nobody@example.com") == reset(Client(), "ada@example.com")


def reset(client: Client, address: str) -> str:
    return client.post("/accounts/password/reset/", {"email": address}, follow=True).text


def test_signing_up_logs_in_and_opens_the_key_page() -> None:
    fields = {"username": "grace", "email": "grace@example.com", "password1": PASSWORD, "password2": PASSWORD}
    answer = Client().post("/accounts/signup/", fields, follow=True)
    assert answer.wsgi_request.path == KEYS
    assert "Logged in as grace." in answer.text


def test_demo_session_carried_elsewhere_ends_and_own_ones_do_not(demo_user: User, user: User) -> None:
    client, carried, own = here(), elsewhere(), elsewhere()
    assert log_in(own) == 302
    assert is_logged_in(own)
    client.force_login(demo_user)
    assert is_logged_in(client)
    carried.cookies["sessionid"] = client.cookies["sessionid"].value
    assert not is_logged_in(carried)
    assert not is_logged_in(client)
