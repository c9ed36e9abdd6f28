"""An address of the operator is named where there is one, and nothing promises it where there is none."""

from __future__ import annotations

import pytest
from django.core.mail import EmailMessage
from django.template.loader import render_to_string
from django.test import Client
from pytest_django.fixtures import Settings

from core.contract.openapi import complete
from tests.accounts.browser import logged_in
from tests.factories import make_account

pytestmark = pytest.mark.django_db
ADDRESS = "support@tickwire.example"
LINK = f'href="mailto:{ADDRESS}"'


@pytest.mark.parametrize("path", ["/about", "/terms", "/accounts/login/"])
def test_pages_name_it_in_their_foot_and_that_of_a_failure_says_whom_to_tell(
    client: Client, settings: Settings, path: str
) -> None:
    assert "mailto:" not in client.get(path).text
    assert "write to" not in render_to_string("500.html")
    settings.CONTACT_EMAIL = ADDRESS
    assert f"<a {LINK}>Contact</a>" in client.get(path).text
    assert f"If it fails again, write to <a {LINK}>{ADDRESS}</a>." in render_to_string("500.html")


@pytest.mark.parametrize(("address", "named"), [("", "the operator of this service"), (ADDRESS, ADDRESS)])
def test_mail_about_a_deleted_account_says_whom_to_ask(
    settings: Settings, mailoutbox: list[EmailMessage], address: str, named: str
) -> None:
    settings.CONTACT_EMAIL = address
    account = make_account()
    account.user.email = "ada@example.com"
    account.user.save()
    logged_in(account.user).post("/settings/account", {"name": account.user.get_username()})
    (mail,) = mailoutbox
    assert f"If you did not ask for this, write to {named}." in str(mail.body)


def test_openapi_document_names_it(settings: Settings) -> None:
    parts = ("openapi", "servers", "tags", "paths")
    assert "contact" not in complete({name: {} for name in parts} | {"info": {}, "components": {}})["info"]
    settings.CONTACT_EMAIL = ADDRESS
    made = complete({name: {} for name in parts} | {"info": {}, "components": {}})
    assert made["info"]["contact"] == {"email": ADDRESS}
