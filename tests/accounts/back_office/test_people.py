"""Users, accounts and tiers in the back office: what staff do to them, what is told of it, what they see."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group, Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils import timezone

from accounts.admin import AccountAdmin
from accounts.back_office.key_pages import ApiKeyAdmin
from accounts.back_office.staff_pages import within_reach
from accounts.models import Account, AiUsage, ApiKey, Tier, Usage, User
from accounts.open_streams.registry import open_streams
from accounts.rights import MAY_PUBLISH
from core.events.kinds import EventKind
from tests.factories import make_account, make_key, make_user

from .office import Office, add_to, address, change, list_of, logged, published, said, text_of

pytestmark = pytest.mark.django_db
PROFILE = {"username": "ada", "email": "ada@example.com"}
ACTIVE = PROFILE | {"is_active": "on"}
NEW_PASSWORD = {"password1": "a long walk 7", "password2": "a long walk 7", "usable_password": "true"}
GRANTED, REVOKED = (EventKind.PUBLISHING_GRANTED, "boss"), (EventKind.PUBLISHING_REVOKED, "boss")
LIMITS = {"requests_per_minute": 60, "streams": 2, "ai_calls_per_day": 5}


@pytest.fixture
def ada(db: None) -> User:
    return make_account(make_user("ada")).user


def tier(name: str) -> Tier:
    return Tier.objects.get(name=name)


def save(office: Office, account: Account, **fields: Any) -> Any:
    return office.post(change(account), **{"tier": account.tier.pk} | fields)


def may_publish(user: User) -> bool:
    return User.objects.get(pk=user.pk).has_perm(MAY_PUBLISH)


def staff_with(*codenames: str) -> Office:
    staff = make_user(is_staff=True)
    staff.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return Office(staff)


def test_a_new_tier_of_an_account_is_told_to_every_process(office: Office, ada: User) -> None:
    account = ada.account
    save(office, account, user=make_user().pk)
    assert (Account.objects.get().user, published()) == (ada, [])
    save(office, account, tier=tier("pro").pk)
    assert Account.objects.get().tier.name == "pro"
    assert published() == [(EventKind.ACCOUNT_CHANGED, "boss")]
    assert logged(account)[1:] == [("boss", "Changed Tier (now Pro).")]
    # A new account may be a publisher's.
    grace = make_user("grace")
    office.post(add_to(Account), user=grace.pk, tier=tier("pro").pk, may_publish="on")
    assert grace.account.tier.name == "pro"
    assert may_publish(grace)
    assert logged(grace.account)[0] == ("boss", "Added.")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"requests_per_minute": 90}, "Changed Requests a minute (now 90)."),
        ({"archive": "on"}, "Changed Archive (now on)."),
    ],
)
def test_new_limits_of_a_tier_are_told_to_every_process(
    office: Office, fields: dict[str, Any], words: str
) -> None:
    free = tier("free")
    office.post(change(free), rank=1, **LIMITS | fields)
    (name,) = fields
    assert getattr(tier("free"), name) in (90, True)
    assert published() == [(EventKind.TIER_CHANGED, "boss")]
    assert logged(free) == [("boss", words)]
    assert dict(tier("free").limits())["Archive"] == ("yes" if name == "archive" else "no")
    answer = office.post(change(free), rank=1, **LIMITS | {"requests_per_minute": 0})
    assert "errornote" in text_of(answer)
    assert tier("free").requests_per_minute in (60, 90)


def shown_as_active(office: Office, account: Account) -> list[str]:
    """In the list and on its page."""
    places = (list_of(Account), "field-is_active"), (change(account), r">\s*Active\s*</label>")
    return [
        re.findall(rf'{cell}.*?title="(True|False)"', office.get(page).text, re.DOTALL)[0]
        for page, cell in places
    ]


def test_locking_a_user_out_is_told_to_every_process_and_a_new_address_is_not(
    office: Office, ada: User
) -> None:
    office.post(change(ada), **ACTIVE | {"email": "ada@example.org"})
    assert (User.objects.get(pk=ada.pk).email, published()) == ("ada@example.org", [])
    assert shown_as_active(office, ada.account) == ["True", "True"]
    office.post(change(ada), **PROFILE | {"email": "ada@example.org"})
    assert shown_as_active(office, ada.account) == ["False", "False"]
    assert not User.objects.get(pk=ada.pk).is_active
    assert published() == [(EventKind.ACCOUNT_CHANGED, "boss")]
    assert logged(ada)[1:] == [("boss", "Changed May log in (now off).")]
    alone = make_user("eve")
    assert office.post(change(alone), username="eve", email="eve@example.com").status_code == 302
    assert not User.objects.get(pk=alone.pk).is_active


def test_a_user_can_be_added_but_not_under_a_name_of_the_service(office: Office, ada: User) -> None:
    for name in ("grace", "Demo"):
        office.post(add_to(User), username=name, **NEW_PASSWORD)
    older = make_user("market")
    office.post(change(ada), **ACTIVE | {"username": "system"})
    office.post(change(older), **ACTIVE | {"username": "market", "email": "ann@tickwire.test"})
    names = set(User.objects.exclude(username="boss").values_list("username", "email"))
    assert names == {("ada", "ada@example.com"), ("grace", ""), ("market", "ann@tickwire.test")}
    assert User.objects.get(username="grace").check_password("a long walk 7")


def test_a_password_is_changed_and_never_shown(office: Office, ada: User) -> None:
    page = reverse("admin:auth_user_password_change", args=[ada.pk])
    office.post(page, **NEW_PASSWORD)
    ada.refresh_from_db()
    assert ada.check_password("a long walk 7")
    assert [who for who, _ in logged(ada)] == ["boss"]
    salt, digest = ada.password.split("$")[1:]
    for text in (text_of(office.get(change(ada))), text_of(office.get(page))):
        assert salt[:6] not in text
        assert digest[:6] not in text


@pytest.mark.parametrize("page", ["account", "user"])
def test_a_switch_gives_and_takes_the_right_to_publish_and_nothing_else(
    office: Office, ada: User, page: str
) -> None:
    row = ada.account if page == "account" else ada
    fields = {"tier": ada.account.tier.pk} | ACTIVE
    role = Group.objects.get(name="Role: support")
    if page == "user":
        fields |= {"groups": role.pk}
    for is_on in (True, True, False):
        office.post(change(row), **fields | ({"may_publish": "on"} if is_on else {}))
        assert may_publish(ada) is is_on
        assert list(ada.groups.all()) == ([role] if page == "user" else [])
    assert published() == [GRANTED, REVOKED]
    if page == "account":
        save(office, ada.account, may_publish="on", is_staff="on", user_permissions=[1])
        user = User.objects.get(pk=ada.pk)
        assert (user.is_staff, user.get_all_permissions()) == (False, {MAY_PUBLISH})


def test_a_publisher_stays_within_reach_and_who_may_do_anything_else_does_not(ada: User) -> None:
    support = staff_with("view_account", "change_account")
    ada.user_permissions.add(Permission.objects.get(codename="publish_signal"))
    assert ada in within_reach(support.user)
    save(support, ada.account)
    assert not may_publish(ada)
    power = Permission.objects.get(codename="change_signal")
    ada.user_permissions.add(power)
    assert ada not in within_reach(support.user)
    member, role = make_user(), Group.objects.create(name="Curators")
    role.permissions.add(power)
    member.groups.add(role)
    assert member not in within_reach(support.user)
    # Nor do they decide about themselves.
    for account in (ada.account, make_account(support.user)):
        assert save(support, account, may_publish="on").status_code == 403
        assert not may_publish(account.user)


def test_an_action_of_a_list_hears_neither_of_oneself_nor_of_who_is_out_of_reach(
    ada: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[Account] = []

    def note(page: object, request: object, rows: Iterable[Account]) -> None:
        heard.extend(rows)

    monkeypatch.setattr(AccountAdmin, "actions", (note,))
    support = staff_with("view_account", "change_account")
    chosen = ada.account, make_account(support.user), make_account(make_user(is_superuser=True))
    answer = support.act("note", *chosen)
    assert heard == [ada.account]
    assert said(answer)[0].startswith("2 left alone: ")


def test_a_row_is_not_given_to_who_is_out_of_reach_though_a_form_offers_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("accounts.back_office.staff_pages.reached", lambda request, rows, owner: rows)
    support, boss = staff_with("view_account", "add_account", "change_account"), make_user(is_superuser=True)
    assert support.post(add_to(Account), user=boss.pk, tier=tier("pro").pk).status_code == 403
    assert not Account.objects.filter(user=boss).exists()


def test_a_button_asks_whose_row_it_is_where_unfold_asks_of_its_kind_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # unfold takes such a row into account for buttons of an object's page, not for those of a list.
    monkeypatch.setattr(ApiKeyAdmin, "actions_detail", ())
    make_key(make_account(make_user(is_superuser=True)))
    key = ApiKey.objects.get()
    support = staff_with("view_apikey", "change_apikey")
    assert support.post(address(key, "revoke", key.pk), answered="1").status_code == 403
    assert ApiKey.objects.get().revoked_at is None


def test_who_may_only_look_sees_the_right_and_no_switch(ada: User) -> None:
    for office, row in (
        (staff_with("view_account"), ada.account),
        (staff_with("view_user", "change_user"), ada),
        (staff_with("view_user"), ada),
    ):
        text = text_of(office.get(change(row)))
        # Only who may set a password is led there.
        assert ("../password/" in text) is office.user.has_perm("accounts.change_user")
        assert "May publish signals" in text
        assert 'name="may_publish"' not in text
        assert "user_permissions" not in text


def test_the_lists_leave_visitors_out_until_they_are_asked_for(office: Office, ada: User) -> None:
    visitor = make_account(make_user("visitor-1"), visitor_from="192.0.2.0/24")
    make_user("without-an-account")
    found = {
        shown: {row.pk for row in office.get(list_of(Account) + shown).context["cl"].queryset}
        for shown in ("", "?visitors=only", "?visitors=with")
    }
    customer = ada.account.pk
    both = {customer, visitor.pk}
    assert found == {"": {customer}, "?visitors=only": {visitor.pk}, "?visitors=with": both}
    users = {user.username for user in office.get(list_of(User)).context["cl"].queryset}
    assert users == {"ada", "boss", "without-an-account"}


@pytest.mark.usefixtures("alone")
def test_the_page_shows_what_the_account_uses_and_has_open(office: Office) -> None:
    account = make_account(tier=tier("pro"))
    make_key(account)
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    Usage.objects.create(account=account, span="day", starts_at=today, requests=1234, streams=7)
    for minute, requests in ((1, 80), (2, 40)):
        at = today + timedelta(minutes=minute)
        Usage.objects.create(account=account, span="minute", starts_at=at, requests=requests)
    AiUsage.objects.create(account=account, day=datetime.now(UTC).date(), used=3)
    page = office.get(change(account))
    used = [(used, allowed) for _, used, allowed in page.context["used_today"]]
    assert used == [(1234, None), (80, 120), (7, None), (0, 5), (3, 20)]
    assert "<dt>Requests today</dt><dd>1,234</dd></div>" in text_of(page)
    assert "<p>1,234 in all, at most 1,234 in a day</p>" in text_of(page)
    assert "No streams are open." in text_of(page)
    slot: Any = async_to_sync(open_streams.claim)(str(account.pk), "/ws/market", 2, on_end=lambda code: None)
    try:
        page = office.get(change(account))
        assert "<code>/ws/market</code> a key, since" in text_of(page)
        assert ("Open streams (API keys)", 1, 5) in page.context["used_today"]
    finally:
        slot.release()


def is_late(statement: str) -> bool:
    """Whether it writes what others may wait for. The log of the back office comes after all else."""
    writes = statement.startswith(("INSERT", "UPDATE", "DELETE"))
    return writes and not re.search(r'"(accounts_controlevent|django_admin_log|django_session)"', statement)


@pytest.mark.parametrize("kind", ["account", "user"])
def test_all_rows_are_written_before_the_first_event(office: Office, ada: User, kind: str) -> None:
    with CaptureQueriesContext(connection) as captured:
        if kind == "account":
            save(office, ada.account, tier=tier("premium").pk, may_publish="on")
        else:
            office.post(change(ada), **PROFILE, may_publish="on")
    statements = [each["sql"] for each in captured.captured_queries]
    first = next(at for at, sql in enumerate(statements) if 'INSERT INTO "accounts_controlevent"' in sql)
    assert [sql for sql in statements[first:] if is_late(sql)] == []
    assert len(published()) == 2


def test_a_refusal_stays_in_the_back_office() -> None:
    answer = Office(make_user(is_staff=True)).get(list_of(User))
    assert answer.status_code == 403
    assert "This page is not open to you" in text_of(answer)
    assert "back_office.css" in text_of(answer)
