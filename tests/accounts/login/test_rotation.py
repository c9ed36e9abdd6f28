"""Secrets change: second factors are sealed anew, and sessions, links and devices of before still count."""

from __future__ import annotations

from typing import Any

import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP
from django.contrib.sessions.models import Session
from django.test import Client
from pytest_django.fixtures import Settings

from accounts.keys.caller import issue_browser_token, read_browser_token
from accounts.models import PageSession, User
from accounts.secrets import Seal, reseal_all, reseal_some
from core.threads import in_thread
from tests.accounts.login.factors import code_of, enrol, is_in, log_in, prove
from tests.factories import make_account, make_user

OLD, NEW = "a pepper or key of before", "a pepper or key of now"


def rotate_pepper(settings: Settings) -> None:
    settings.KEY_PEPPER, settings.KEY_PEPPER_FALLBACKS = NEW, [settings.KEY_PEPPER]


def recovery_codes() -> list[str]:
    factor = Authenticator.objects.get(type=Authenticator.Type.RECOVERY_CODES)
    codes: list[str] = RecoveryCodes(factor).get_unused_codes()
    return codes


@pytest.fixture
def ada(db: None) -> User:
    return make_user("ada", password="a long walk 7", email="ada@example.com")


@pytest.fixture
def secret(ada: User) -> str:
    return enrol(log_in("ada"))


def test_factor_of_before_opens_until_and_after_it_is_sealed_anew(secret: str, settings: Settings) -> None:
    used, *codes = recovery_codes()
    assert prove(log_in("ada"), used)
    rotate_pepper(settings)
    assert prove(log_in("ada"), code_of(secret))
    assert reseal_some(0) == (None, {Seal.FALLBACK: 2})
    settings.KEY_PEPPER_FALLBACKS = []
    assert reseal_some(0) == (None, {Seal.CURRENT: 2})
    assert recovery_codes() == codes
    # Neither before nor after works a code twice.
    assert not prove(log_in("ada"), used)
    assert prove(log_in("ada"), codes[0])


def test_factor_that_no_pepper_opens_is_left_as_it_is(secret: str, settings: Settings) -> None:
    before = list(Authenticator.objects.order_by("pk").values_list("data", flat=True))
    settings.KEY_PEPPER, settings.KEY_PEPPER_FALLBACKS = NEW, ["another"]
    assert reseal_some(0) == (None, {Seal.UNKNOWN: 2})
    assert list(Authenticator.objects.order_by("pk").values_list("data", flat=True)) == before


def test_codes_of_an_earlier_kind_are_sealed_anew_too(secret: str, settings: Settings) -> None:
    from core.encryption import seal

    factor = Authenticator.objects.get(type=Authenticator.Type.RECOVERY_CODES)
    factor.data = {"migrated_codes": [seal("12345678"), seal("87654321")], "used_mask": 0}
    factor.save()
    rotate_pepper(settings)
    reseal_some(0)
    settings.KEY_PEPPER_FALLBACKS = []
    assert recovery_codes() == ["12345678", "87654321"]


@pytest.mark.django_db(transaction=True)
async def test_service_seals_anew_by_itself(settings: Settings) -> None:
    ada = await in_thread(lambda: make_user("ada", password="a long walk 7"))
    await in_thread(lambda: TOTP.activate(ada, "JBSWY3DPEHPK3PXP"))
    rotate_pepper(settings)
    await reseal_all()
    settings.KEY_PEPPER_FALLBACKS = []
    assert await in_thread(reseal_some, 0) == (None, {Seal.CURRENT: 1})


def rotate_key(settings: Settings) -> None:
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [settings.SECRET_KEY]


def test_session_of_before_goes_on_under_its_name(ada: User, settings: Settings) -> None:
    client = log_in("ada")
    name = Session.objects.get().session_key
    page = PageSession.objects.create(session_key=name, account=make_account(user=ada))
    rotate_key(settings)
    assert is_in(client)
    assert Session.objects.get().session_key == name
    assert page.session() is not None
    # It was signed anew, so it does not need the fallback any more.
    settings.SECRET_KEY_FALLBACKS = []
    assert is_in(client)
    assert PageSession.objects.get().session() is not None


def test_process_that_has_not_changed_over_yet_takes_it_too(ada: User, settings: Settings) -> None:
    client = log_in("ada")
    old = settings.SECRET_KEY
    for _ in range(2):
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = NEW, [old]
        assert is_in(client)
        settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = old, [NEW]
        assert is_in(client)
    assert Session.objects.count() == 1
    settings.SECRET_KEY, settings.SECRET_KEY_FALLBACKS = "one that never was", []
    assert not is_in(client)


def test_a_new_password_still_ends_other_sessions_during_a_rotation(ada: User, settings: Settings) -> None:
    here, elsewhere = log_in("ada"), log_in("ada")
    name = here.cookies["sessionid"].value
    rotate_key(settings)
    change = {"oldpassword": "a long walk 7", "password1": "another walk 8", "password2": "another walk 8"}
    assert here.post("/accounts/password/change/", change).status_code == 302
    assert is_in(here)
    assert here.cookies["sessionid"].value != name
    assert not is_in(elsewhere)


def test_token_of_a_page_from_before_is_read(settings: Settings) -> None:
    text, token = issue_browser_token(12)
    rotate_key(settings)
    assert read_browser_token(text) == token
    settings.SECRET_KEY_FALLBACKS = []
    assert read_browser_token(text) is None


def test_device_of_before_is_still_known(ada: User, settings: Settings) -> None:
    from accounts.login.adapters import device_of

    client = log_in("ada")
    rotate_key(settings)
    request: Any = Client().get("/accounts/login/").wsgi_request
    request.COOKIES["known_device"] = client.cookies["known_device"].value
    assert device_of(request, f"user {ada.pk}") is not None
