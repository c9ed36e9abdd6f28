"""Staff lock somebody out: what their browsers had open ends, and does not come back."""

from __future__ import annotations

import pytest
from django.core import mail
from django.test import Client

from accounts.models import User
from tests.accounts.back_office.office import Office, change
from tests.accounts.login.factors import PASSWORD, log_in
from tests.factories import make_account, make_user

pytestmark = [pytest.mark.django_db, pytest.mark.services]
PAGE, EMAIL = "/settings/keys", "ada@example.com"


@pytest.fixture
def ada() -> User:
    user = make_user("ada", PASSWORD)
    make_account(user)
    return user


def switch(office: Office, user: User, *, may_log_in: bool) -> None:
    office.post(change(user), username="ada", email=EMAIL, is_active="on" if may_log_in else "")
    user.refresh_from_db()
    assert user.is_active is may_log_in


def test_session_that_was_locked_out_stays_out_and_those_of_others_do_not(office: Office, ada: User) -> None:
    make_account(make_user("eve", PASSWORD))
    thief, other = log_in("ada"), log_in("eve")
    assert thief.get(PAGE).status_code == 200
    switch(office, ada, may_log_in=False)
    switch(office, ada, may_log_in=True)
    assert [each.get(PAGE).status_code for each in (thief, other, log_in("ada"))] == [302, 200, 200]


def test_locked_account_is_not_said_to_be_none(office: Office, ada: User) -> None:
    switch(office, ada, may_log_in=False)
    answer = Client().post("/accounts/password/reset/", {"email": EMAIL})
    assert answer["Location"] == "/accounts/password/reset/done/"
    (sent,) = mail.outbox
    assert sent.subject == "Your Tickwire account is locked"
    assert "Only the staff of this service can unlock it." in sent.body
