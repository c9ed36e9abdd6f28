"""POST /page-token, the text that it gives, whom it stands for, and what ends it."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
import time_machine
from django.contrib.sessions.models import Session
from django.core.signing import Signer
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from accounts.key_text import derive_key, is_well_formed
from accounts.keys.caller import (
    NO_KEY,
    PAGE_REQUESTS,
    PAGE_STREAMS,
    Allowances,
    Caller,
    find_browser_caller,
    issue_browser_token,
    of_pages,
    read_browser_token,
)
from accounts.models import Account, PageSession, User
from core.events.kinds import EventKind
from tests.accounts.back_office.office import published
from tests.accounts.browser import ask, browser, logged_in, token_of
from tests.factories import NOON, make_account, make_user

pytestmark = pytest.mark.django_db
PASSWORD, NEW = "a long walk 7", "a longer walk 8"
AT = NOON.timestamp()


@pytest.fixture
def user() -> User:
    return make_account(make_user("ada", PASSWORD), tier="premium").user


@pytest.fixture
def page(user: User) -> Client:
    return logged_in(user)


def session_of(token: str) -> int:
    read_token = read_browser_token(token)
    assert read_token is not None
    return read_token.page_session


def caller_of(token: str) -> Caller | None:
    return find_browser_caller(session_of(token))


def kinds() -> list[str]:
    return [kind for kind, _ in published()]


def test_answer_says_until_when_and_is_not_kept(page: Client) -> None:
    answer = ask(page)
    assert set(answer.json()) == {"token", "expires_at"}
    expires_at = answer.json()["expires_at"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", expires_at)
    assert 290 < (datetime.fromisoformat(expires_at) - timezone.now()).total_seconds() <= 300
    assert answer["Content-Type"] == "application/json"
    assert "no-store" in answer["Cache-Control"]


def test_token_is_for_the_account_that_is_logged_in_and_for_one_session(
    page: Client, user: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    tokens = [token_of(page) for _ in range(3)]
    caller = caller_of(tokens[0])
    assert caller is not None
    assert (caller.username, caller.account_id) == ("ada", user.account.pk)
    assert (caller.allowances.tier, caller.allowances.requests) == ("premium", 120)
    assert page.cookies["sessionid"].value not in tokens[0]
    assert len({session_of(token) for token in tokens}) == PageSession.objects.count() == 1
    # The session, its user, the account, and what stands for it.
    with django_assert_num_queries(4):
        token_of(page)
    other = logged_in(user)
    assert session_of(token_of(other)) != session_of(tokens[0])
    # What ends elsewhere, or is saved otherwise, ends nothing.
    user.first_name = "Ada"
    user.save()
    assert kinds() == []
    other.post("/accounts/logout/")
    assert caller_of(tokens[0]) is not None
    # A new user gets a free account.
    newcomer = caller_of(token_of(logged_in(make_user("new"))))
    assert newcomer is not None
    assert newcomer.allowances.tier == "free"


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


def run_out(page: Client, user: User) -> None:
    Session.objects.update(expire_date=timezone.now() - timedelta(seconds=1))


def set_password(page: Client, user: User) -> None:
    user.set_password(NEW)
    user.save()


def lock_out(page: Client, user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_active=False)


def become_another(page: Client, user: User) -> None:
    store, key = page.session, page.session.session_key
    store["_auth_user_id"] = str(make_user("eve").pk)
    store.save()
    assert store.session_key == key


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda page, user: page.post("/accounts/logout/"), [EventKind.SESSION_ENDED]),
        (lambda page, user: Session.objects.all().delete(), [EventKind.SESSION_ENDED]),
        (run_out, []),
        (set_password, [EventKind.PASSWORD_CHANGED]),
        (lock_out, []),
        (become_another, []),
    ],
    ids=["logged out", "deleted by staff", "run out", "new password", "locked out", "of another user"],
)
def test_token_ends_with_its_session_and_that_is_told(
    page: Client, user: User, act: Callable[[Client, User], object], told: list[str]
) -> None:
    token = token_of(page)
    act(page, user)
    assert (caller_of(token), kinds()) == (None, told)


def test_new_password_of_its_owner_ends_it_in_all_sessions(page: Client, user: User) -> None:
    here, elsewhere = token_of(page), token_of(logged_in(user))
    fields = {"oldpassword": PASSWORD, "password1": NEW, "password2": NEW}
    assert page.post("/accounts/password/change/", fields).status_code == 302
    assert (caller_of(here), caller_of(elsewhere)) == (None, None)
    assert set(kinds()) == {EventKind.SESSION_ENDED, EventKind.PASSWORD_CHANGED}
    # The session in which it was changed goes on, and so does its page.
    assert caller_of(token_of(page)) is not None


def test_a_page_has_the_limits_of_pages_and_only_the_ai_calls_of_its_account() -> None:
    key = Allowances(tier="premium", requests=6000, streams=50, ai_calls=100, archive=True)
    caller = Caller(7, 3, "ada", key, None, False, "7")
    page = caller.on_page("203.0.113.7")
    assert page.allowances == Allowances(
        tier="premium", requests=PAGE_REQUESTS, streams=PAGE_STREAMS, ai_calls=100, archive=False
    )
    assert (page.key_id, page.counted_under) == (NO_KEY, "visitors:203.0.113.7")
    assert (page.is_page, page.policy, caller.policy) == (True, "pages", "premium")
    assert of_pages(7) == "pages:7"


def issued() -> str:
    with time_machine.travel(NOON, tick=False):
        return issue_browser_token(12)[0]


@pytest.mark.parametrize(("later_s", "is_over"), [(0, False), (299, False), (300, True)])
def test_token_lives_for_five_minutes(later_s: int, is_over: bool) -> None:
    token = read_browser_token(issued())
    assert token is not None
    assert token == (12, AT + 300)
    with time_machine.travel(NOON + timedelta(seconds=later_s), tick=False):
        assert token.has_ended is is_over


@pytest.mark.parametrize(
    "text",
    [
        *("", "pt_", "pt_.", "pt_1-2", "pt_1-2.", "pt_1-2.x", "pt_١-٢.x", "pt_\ud800", "pt_\0", "pt_é.x"),
        *("pt_" + "x" * 10_000, "PT_1-2.x", "letmein", derive_key("a secret", "of a key")),
        pytest.param("pt_" + Signer(salt="another", sep=".").sign("12-9999999999"), id="of another salt"),
    ],
)
def test_what_we_did_not_sign_for_a_page_is_none(text: str) -> None:
    assert read_browser_token(text) is None


def test_token_is_one_word_of_printable_ascii_and_once_changed_is_none() -> None:
    text = issued()
    assert re.fullmatch(r"pt_[!#-&(-+\--:<-~]+", text)
    assert not is_well_formed(text)
    changed = {text[:place] + chr(ord(text[place]) ^ 1) + text[place + 1 :] for place in range(len(text) - 1)}
    assert len(changed) == len(text) - 1
    assert [each for each in changed if read_browser_token(each)] == []
