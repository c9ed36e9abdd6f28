"""POST /page-token, and what ends that what it gives."""

from __future__ import annotations

import re
from datetime import timedelta

import pytest
from django.contrib.sessions.models import Session
from django.test import Client
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from pytest_django import DjangoAssertNumQueries

from accounts.keys.browser_tokens import read_browser_token
from accounts.keys.caller import Caller, find_browser_caller
from accounts.models import Account, PageSession, User
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from tests.accounts.browser import ask, browser, logged_in, token_of
from tests.factories import make_account, make_user

pytestmark = pytest.mark.django_db
PASSWORD = "a long walk 7"


@pytest.fixture
def user() -> User:
    return make_account(make_user("ada", PASSWORD), tier="premium").user


@pytest.fixture
def page(user: User) -> Client:
    return logged_in(user)


def caller_of(token: str) -> Caller | None:
    read_token = read_browser_token(token)
    assert read_token is not None
    return find_browser_caller(read_token.page_session)


def kinds() -> list[str]:
    return list(ControlEvent.objects.order_by("position").values_list("kind", flat=True))


def test_token_is_for_the_account_that_is_logged_in(page: Client, user: User) -> None:
    caller = caller_of(token_of(page))
    assert caller is not None
    assert (caller.username, caller.account_id) == ("ada", user.account.pk)
    assert (caller.allowances.tier, caller.allowances.requests) == ("premium", 120)


def test_answer_says_until_when_and_is_not_kept(page: Client) -> None:
    answer = ask(page)
    assert set(answer.json()) == {"token", "expires_at"}
    expires_at = answer.json()["expires_at"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", expires_at)
    moment = parse_datetime(expires_at)
    assert moment is not None
    assert 290 < (moment - timezone.now()).total_seconds() <= 300
    assert answer["Content-Type"] == "application/json"
    assert "no-store" in answer["Cache-Control"]


def test_new_user_gets_a_free_account() -> None:
    caller = caller_of(token_of(logged_in(make_user("new"))))
    assert caller is not None
    assert caller.allowances.tier == "free"


def test_stranger_outside_the_demo_gets_none() -> None:
    answer = ask(browser())
    assert (answer.status_code, answer.json()["error"]["code"]) == (403, "login_required")
    assert answer.json()["error"]["request_id"] == answer["X-Request-Id"]
    assert (Session.objects.count(), Account.objects.count()) == (0, 0)


@pytest.mark.parametrize("method", ["get", "head", "put", "delete"])
def test_only_a_post_is_answered(page: Client, method: str) -> None:
    answer = getattr(page, method)("/page-token")
    assert (answer.status_code, answer["Allow"]) == (405, "POST")
    assert PageSession.objects.count() == 0


def test_page_of_another_origin_gets_none(user: User) -> None:
    client = browser(enforce_csrf_checks=True)
    client.force_login(user)
    assert ask(client).status_code == 403
    client.get("/accounts/password/change/")
    csrf = client.cookies["csrftoken"].value
    assert client.post("/page-token", headers={"X-CSRFToken": csrf}).status_code == 200


def test_session_is_known_once_however_often_it_asks(page: Client, user: User) -> None:
    tokens = [token_of(page) for _ in range(3)]
    assert PageSession.objects.count() == 1
    other = token_of(logged_in(user))
    sessions = {read_browser_token(token).page_session for token in tokens}  # type: ignore[union-attr]
    assert sessions != {read_browser_token(other).page_session}  # type: ignore[union-attr]


def test_asking_again_costs_little(page: Client, django_assert_num_queries: DjangoAssertNumQueries) -> None:
    token_of(page)
    # The session, its user, the account, and what stands for it.
    with django_assert_num_queries(4):
        token_of(page)


def test_token_does_not_tell_the_session(page: Client) -> None:
    assert page.cookies["sessionid"].value not in token_of(page)


def test_logging_out_ends_it_and_is_told(page: Client) -> None:
    token = token_of(page)
    page.post("/accounts/logout/")
    assert caller_of(token) is None
    assert kinds() == [EventKind.SESSION_ENDED]
    assert PageSession.objects.count() == 0


def test_logging_out_elsewhere_does_not(page: Client, user: User) -> None:
    token = token_of(page)
    other = logged_in(user)
    token_of(other)
    other.post("/accounts/logout/")
    assert caller_of(token) is not None


def test_session_that_staff_delete_ends_it(page: Client) -> None:
    token = token_of(page)
    Session.objects.all().delete()
    assert (caller_of(token), kinds()) == (None, [EventKind.SESSION_ENDED])


def test_session_that_has_run_out_ends_it(page: Client) -> None:
    token = token_of(page)
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))
    assert caller_of(token) is None


def test_new_password_ends_it_in_all_sessions_and_is_told(page: Client, user: User) -> None:
    here, elsewhere = token_of(page), token_of(logged_in(user))
    fields = {"oldpassword": PASSWORD, "password1": "a longer walk 8", "password2": "a longer walk 8"}
    assert page.post("/accounts/password/change/", fields).status_code == 302
    assert (caller_of(here), caller_of(elsewhere)) == (None, None)
    assert set(kinds()) == {EventKind.SESSION_ENDED, EventKind.PASSWORD_CHANGED}
    # The session in which it was changed goes on, and so does its page.
    assert caller_of(token_of(page)) is not None


def test_new_password_from_the_back_office_ends_it(page: Client, user: User) -> None:
    token = token_of(page)
    user.set_password("a longer walk 8")
    user.save()
    assert (caller_of(token), kinds()) == (None, [EventKind.PASSWORD_CHANGED])


def test_saving_a_user_otherwise_tells_nobody(user: User) -> None:
    user.first_name = "Ada"
    user.save()
    assert kinds() == []


def test_user_who_is_locked_out_is_nobody(page: Client, user: User) -> None:
    token = token_of(page)
    User.objects.filter(pk=user.pk).update(is_active=False)
    assert caller_of(token) is None


def test_session_that_became_somebody_elses_is_nobodys(page: Client) -> None:
    token = token_of(page)
    session = Session.objects.get()
    store = page.session
    store["_auth_user_id"] = str(make_user("eve").pk)
    store.save()
    assert Session.objects.get().session_key == session.session_key
    assert caller_of(token) is None
