"""The page of an account: who may publish, what it uses; and the list without the demo's visitors."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.back_office.staff_pages import within_reach
from accounts.models import Account, AiUsage, Tier, Usage, User
from accounts.open_streams.registry import open_streams
from core.events.kinds import EventKind
from signals_feed.models import PERMISSION
from tests.factories import make_account, make_key, make_user

from .office import Office, change, list_of, logged, published, text_of

pytestmark = pytest.mark.django_db


def save(office: Office, account: Account, **fields: Any) -> Any:
    return office.post(change(account), tier=account.tier.pk, **fields)


def may_publish(account: Account) -> bool:
    return User.objects.get(pk=account.user.pk).has_perm(PERMISSION)


def staff_with(*codenames: str) -> Office:
    staff = make_user(is_staff=True)
    staff.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return Office(staff)


def test_a_switch_gives_and_takes_the_right_to_publish(office: Office) -> None:
    account = make_account()
    save(office, account, may_publish="on")
    assert may_publish(account)
    save(office, account)
    assert not may_publish(account)
    assert logged(account) == [
        ("boss", f"Changed May publish signals (now {word}).") for word in ("on", "off")
    ]
    assert published() == [(EventKind.PUBLISHING_GRANTED, "boss"), (EventKind.PUBLISHING_REVOKED, "boss")]


def test_saving_keeps_the_right_as_it_was(office: Office) -> None:
    account = make_account()
    save(office, account, may_publish="on")
    save(office, account, may_publish="on")
    assert may_publish(account)
    assert logged(account)[1:] == [("boss", "No fields changed.")]
    assert published() == [(EventKind.PUBLISHING_GRANTED, "boss")]


def test_the_switch_gives_nothing_else(office: Office) -> None:
    account = make_account()
    save(office, account, may_publish="on", is_staff="on", user_permissions=[1])
    user = User.objects.get(pk=account.user.pk)
    assert (user.is_staff, user.get_all_permissions()) == (False, {PERMISSION})


def test_a_publisher_stays_within_reach_of_staff_who_do_not_publish() -> None:
    publisher = make_account()
    publisher.user.user_permissions.add(Permission.objects.get(codename="publish_signal"))
    support = staff_with("view_account", "change_account")
    assert publisher.user in within_reach(support.user)
    save(support, publisher)
    assert not may_publish(publisher)


def test_any_other_permission_puts_its_holder_out_of_reach() -> None:
    colleague = make_account()
    colleague.user.user_permissions.add(Permission.objects.get(codename="change_signal"))
    support = staff_with("view_account", "change_account")
    assert colleague.user not in within_reach(support.user)
    assert save(support, colleague, may_publish="on").status_code == 403


def test_nobody_switches_it_on_for_themselves() -> None:
    support = staff_with("view_account", "change_account")
    own = make_account(support.user)
    assert save(support, own, may_publish="on").status_code == 403
    assert not may_publish(own)


def test_whoever_may_only_look_sees_the_right_and_no_switch() -> None:
    account = make_account()
    account.user.user_permissions.add(Permission.objects.get(codename="publish_signal"))
    page = text_of(staff_with("view_account").get(change(account)))
    assert "May publish signals" in page
    assert 'name="may_publish"' not in page


def test_the_list_leaves_visitors_out_until_they_are_asked_for(office: Office) -> None:
    customer, visitor = make_account(make_user("ada")), make_account(visitor_from="192.0.2.0/24")
    found = {
        shown: {row.pk for row in office.get(list_of(Account) + shown).context["cl"].queryset}
        for shown in ("", "?visitors=only", "?visitors=with")
    }
    assert found == {
        "": {customer.pk},
        "?visitors=only": {visitor.pk},
        "?visitors=with": {customer.pk, visitor.pk},
    }


def test_the_list_of_users_leaves_them_out_too(office: Office) -> None:
    make_account(make_user("visitor-1"), visitor_from="192.0.2.0/24")
    make_user("without-an-account")
    names = {user.username for user in office.get(list_of(User)).context["cl"].queryset}
    assert names == {"boss", "without-an-account"}


@pytest.mark.usefixtures("alone")
def test_the_page_shows_what_the_account_uses(office: Office) -> None:
    account = make_account(tier=Tier.objects.get(name="pro"))
    make_key(account)
    today = timezone.now().replace(hour=0, minute=0, second=0, microsecond=0)
    Usage.objects.create(account=account, span="day", starts_at=today, requests=1234, streams=7)
    for minute, requests in ((1, 80), (2, 40)):
        at = today + timedelta(minutes=minute)
        Usage.objects.create(account=account, span="minute", starts_at=at, requests=requests)
    AiUsage.objects.create(account=account, day=datetime.now(UTC).date(), used=3)
    page = office.get(change(account))
    assert [(used, allowed) for _, used, allowed in page.context["used_today"]] == [
        *((1234, None), (80, 120), (7, None)),
        *((0, 5), (3, 20)),
    ]
    assert page.context["open_streams"] == []
    assert "<dt>Requests today</dt><dd>1,234</dd></div>" in text_of(page)
    assert "busiest minute today</dt><dd>80</dd><dd>The tier allows 120</dd>" in text_of(page)
    assert ">Usage</h2>" in text_of(page)
    assert "<p>1,234 in all, at most 1,234 in a day</p>" in text_of(page)
    assert "No streams are open." in text_of(page)


@pytest.mark.usefixtures("alone")
def test_the_page_lists_what_the_account_has_open(office: Office) -> None:
    from asgiref.sync import async_to_sync

    account = make_account()
    claim = async_to_sync(open_streams.claim)
    slot: Any = claim(str(account.pk), "/ws/market", 2, on_end=lambda code: None)
    try:
        assert "<code>/ws/market</code> a key, since" in text_of(office.get(change(account)))
    finally:
        slot.release()


@pytest.mark.parametrize("is_active", [True, False])
def test_list_and_page_say_whether_the_account_is_locked(office: Office, is_active: bool) -> None:
    account = make_account(make_user("marta", is_active=is_active))

    for page, cell in ((list_of(Account), "field-is_active"), (change(account), r">\s*Active\s*</label>")):
        said = re.search(rf'{cell}.*?title="(True|False)"', office.get(page).text, re.DOTALL)
        assert said is not None, page
        assert said[1] == str(is_active)


def test_a_new_account_can_be_opened_for_a_publisher(office: Office) -> None:
    ada = make_user("ada")
    office.post(
        "/admin/accounts/account/add/", user=ada.pk, tier=Tier.objects.get(name="pro").pk, may_publish="on"
    )
    assert User.objects.get(pk=ada.pk).has_perm(PERMISSION)


def is_late(statement: str) -> bool:
    """Whether it writes what others may wait for. The log of the back office comes after all else."""
    writes = statement.startswith(("INSERT", "UPDATE", "DELETE"))
    return writes and not re.search(r'"(accounts_controlevent|django_admin_log|django_session)"', statement)


@pytest.mark.parametrize("kind", ["account", "user"])
def test_all_rows_are_written_before_the_first_event(office: Office, kind: str) -> None:
    account = make_account()
    premium = Tier.objects.get(name="premium")
    with CaptureQueriesContext(connection) as captured:
        if kind == "account":
            office.post(change(account), tier=premium.pk, may_publish="on")
        else:
            name = account.user.get_username()
            office.post(change(account.user), username=name, email="", may_publish="on", is_active="")
    statements = [each["sql"] for each in captured.captured_queries]
    first = next(at for at, sql in enumerate(statements) if 'INSERT INTO "accounts_controlevent"' in sql)
    assert [sql for sql in statements[first:] if is_late(sql)] == []
    assert len(published()) == 2
    assert may_publish(account) is (kind == "account")
