"""The page on which owners take their data along and delete their account."""

from __future__ import annotations

import io
import json
import re
import shlex
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from django.core.mail import EmailMessage
from django.core.management import call_command
from django.core.management.base import CommandError
from django.test import Client

from accounts.limits.tiers import change_tier
from accounts.models import Account, ApiKey, Tier, Usage, User
from news.models import ItemScore
from tests.accounts.login.factors import PASSWORD, log_in
from tests.documents.commands import sub_commands
from tests.factories import NOON, make_account, make_key, make_news, make_user
from tests.signals_feed.published_signals import make_published, make_published_by_name

pytestmark = pytest.mark.django_db
PAGE, EXPORT = "/settings/account", "/settings/account/export"


@pytest.fixture
def account() -> Account:
    return make_account(make_user("ada", PASSWORD))


@pytest.fixture
def page(account: Account) -> Client:
    """Of somebody who has just confirmed their password."""
    client = log_in("ada")
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    return client


def read(packed: bytes) -> dict[str, Any]:
    with zipfile.ZipFile(io.BytesIO(packed)) as file:
        found: dict[str, Any] = json.loads(file.read("account.json"))
        return found


BY_NAME = "that version 0.1.0 wrote"
STAYING = {
    "signals": ("The public ledger calls you publisher-", "A hash of your username is kept"),
    "name in the ledger": (BY_NAME,),
    "staff": ("What you did as staff stays on record",),
    "scores": ("Scores that you gave to news keep your username",),
}


def said(text: str) -> set[str]:
    text = re.sub(r"<[^>]+>", "", text)
    return {name for name, sentences in STAYING.items() if all(each in text for each in sentences)}


def publish_under_another_name(user: User) -> None:
    make_published_by_name(user=user)
    User.objects.filter(pk=user.pk).update(username="ada2")


def score(user: User) -> None:
    ItemScore.objects.create(item=make_news(), title="Gold up", score=0.5, model="gpt", by="ada")


def be_staff(user: User) -> None:
    User.objects.filter(pk=user.pk).update(is_staff=True)


def have_been_staff(user: User) -> None:
    change_tier(make_account(), Tier.objects.get(name="pro"), by="ada")


@pytest.mark.parametrize(
    ("act", "staying", "told"),
    [
        (lambda user: None, set(), ""),
        (lambda user: make_published(user=user), {"signals"}, "calls you publisher-{pk}."),
        (
            publish_under_another_name,
            {"signals", "name in the ledger"},
            f"calls you publisher-{{pk}}; only your entries {BY_NAME}",
        ),
        (score, {"scores"}, "Scores that you gave to news keep your username"),
        (be_staff, {"staff"}, ""),
        (have_been_staff, {"staff"}, ""),
    ],
)
def test_page_tells_what_stays_of_this_account_and_nothing_else(
    page: Client, account: Account, act: Callable[[User], object], staying: set[str], told: str
) -> None:
    act(account.user)
    assert said(page.get(PAGE).text) == staying
    account.user.refresh_from_db()
    done = page.post(PAGE, {"name": account.user.username}).text
    assert told.format(pk=account.user_id) in done
    assert (f"under the name deleted-{account.user_id}" in done) is ("signals" in staying)
    assert (BY_NAME in done) is ("name in the ledger" in staying)


def test_everything_is_taken_along_a_few_times_an_hour_but_no_secret(page: Client, account: Account) -> None:
    secret = make_key(account, "laptop")
    Usage.objects.create(account=account, span="day", starts_at=NOON, requests=7)
    signal = make_published(user=account.user)
    answer = page.get(EXPORT)
    assert answer["Content-Type"] == "application/zip"
    data = read(answer.content)
    assert data["person"][0]["username"] == "ada"
    assert data["keys"][0]["prefix"] == secret[:16]
    assert data["usage"] == [
        {"span": "day", "starts_at": "2026-11-18T12:00:00Z", "requests": 7, "streams": 0}
    ]
    assert data["signals"][0]["id"] == str(signal.pk)
    assert data["account"][0]["tier__name"] == "free"
    assert [event["kind"] for event in data["events"]] == ["key.issued"]
    # Not when it was last seen: nobody writes that down with every request.
    assert [set(session) for session in data["sessions"]] == [{"ip", "user_agent", "created_at"}]
    assert {"email_addresses", "second_factors", "ai_usage", "tier_requests", "open_streams"} <= data.keys()
    assert secret not in json.dumps(data)
    assert ApiKey.objects.get().digest[:12] not in json.dumps(data)
    assert account.user.password not in json.dumps(data)
    assert [page.get(EXPORT).status_code for _ in range(6)] == [200] * 5 + [429]


def test_the_password_is_asked_for_again(account: Account) -> None:
    client = Client()
    client.force_login(account.user)
    for answer in (client.post(PAGE, {"name": "ada"}), client.get(EXPORT)):
        assert answer.status_code == 302
        assert answer["Location"].startswith("/accounts/reauthenticate/")
    assert User.objects.filter(username="ada").exists()


def test_only_the_name_that_is_typed_deletes_and_a_mail_tells(
    page: Client, mailoutbox: list[EmailMessage]
) -> None:
    # Who has to stay is told why.
    Account.objects.update(is_demo=True)
    answer = page.post(PAGE, {"name": "ada"})
    assert (answer.status_code, "belongs to the demo" in answer.text) == (409, True)
    Account.objects.update(is_demo=False)
    assert page.post(PAGE, {"name": "Ada"}).status_code == 400
    assert User.objects.filter(username="ada").exists()
    assert "Your account is deleted" in page.post(PAGE, {"name": "ada"}).text
    assert not User.objects.filter(username="ada").exists()
    assert page.get(PAGE).status_code == 302
    (mail,) = mailoutbox
    assert (mail.to, "is deleted" in mail.subject) == (["ada@example.com"], True)


def test_the_command_writes_the_same_for_its_owner_alone(account: Account, tmp_path: Path) -> None:
    path = tmp_path / "ada.zip"
    call_command("export_account", "ada", str(path))
    assert read(path.read_bytes())["person"][0]["username"] == "ada"
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(CommandError, match="File exists"):
        call_command("export_account", "ada", str(path))
    with pytest.raises(CommandError, match="no user"):
        call_command("export_account", "nobody")


def test_the_commands_of_the_page_for_operators_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    make_user("NAME")
    for line in sub_commands("accounts.md"):
        name, *words = shlex.split(line.replace("/srv/exports", str(tmp_path)))
        call_command(name.replace("-", "_"), *words)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["NAME.zip", "name.zip"]
    assert not User.objects.exists()
