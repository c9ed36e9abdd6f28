from __future__ import annotations

import pytest
from django.test import Client

from accounts.models import Account
from tests.accounts.browser import logged_in
from tests.factories import make_account, make_user


@pytest.fixture
def account(db: None) -> Account:
    return make_account(make_user("ada"))


@pytest.fixture
def page(account: Account) -> Client:
    return logged_in(account.user)
