"""Users, accounts and tiers in the back office."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission
from django.urls import reverse

from accounts.models import Account, Tier, User
from core.events.kinds import EventKind
from tests.factories import make_account, make_user

from .office import Office, add_to, address, change, logged, published, text_of
from .rows import one_of_each

pytestmark = pytest.mark.django_db
PROFILE = {"username": "ada", "email": "ada@example.com"}
NEW_PASSWORD = {"password1": "a long walk 7", "password2": "a long walk 7"}


def password_of(user: User) -> str:
    return reverse("admin:auth_user_password_change", args=[user.pk])


def test_a_new_tier_of_an_account_is_told_to_every_process(office: Office) -> None:
    account = make_account()
    office.post(change(account), tier=Tier.objects.get(name="pro").pk)
    assert Account.objects.get().tier.name == "pro"
    assert published() == [(EventKind.ACCOUNT_CHANGED, "boss")]
    assert logged(account) == [("boss", "Changed Tier (now Pro).")]


def test_saving_an_account_as_it_was_tells_nobody(office: Office) -> None:
    account = make_account()
    office.post(change(account), tier=account.tier.pk)
    assert published() == []


def test_an_account_keeps_its_user(office: Office) -> None:
    account, other = make_account(), make_user()
    office.post(change(account), tier=account.tier.pk, user=other.pk)
    assert Account.objects.get().user == account.user


def test_an_account_can_be_opened(office: Office) -> None:
    ada = make_user("ada")
    office.post(add_to(Account), user=ada.pk, tier=Tier.objects.get(name="pro").pk)
    assert ada.account.tier.name == "pro"
    assert logged(ada.account) == [("boss", "Added.")]


def test_new_limits_of_a_tier_are_told_to_every_process(office: Office) -> None:
    free = Tier.objects.get(name="free")
    office.post(change(free), rank=1, requests_per_minute=90, streams=2, ai_calls_per_day=5)
    free.refresh_from_db()
    assert free.requests_per_minute == 90
    assert published() == [(EventKind.TIER_CHANGED, "boss")]
    assert logged(free) == [("boss", "Changed Requests a minute (now 90).")]


def test_archive_is_opened_to_a_tier(office: Office) -> None:
    pro = Tier.objects.get(name="pro")
    office.post(change(pro), rank=2, requests_per_minute=120, streams=5, ai_calls_per_day=20, archive="on")
    pro.refresh_from_db()
    assert pro.archive
    assert published() == [(EventKind.TIER_CHANGED, "boss")]
    assert logged(pro) == [("boss", "Changed Archive (now on).")]


@pytest.mark.parametrize(("name", "said"), [("free", "no"), ("premium", "yes")])
def test_limits_of_a_tier_say_whether_it_has_the_archive(name: str, said: str) -> None:
    assert dict(Tier.objects.get(name=name).limits())["Archive"] == said


def test_a_tier_without_requests_is_refused_in_words(office: Office) -> None:
    free = Tier.objects.get(name="free")
    answer = office.post(change(free), rank=1, requests_per_minute=0, streams=2, ai_calls_per_day=5)
    assert answer.status_code == 200
    assert "errornote" in text_of(answer)
    assert Tier.objects.get(name="free").requests_per_minute == 60


def test_locking_a_user_out_is_told_to_every_process(office: Office) -> None:
    ada = make_user("ada")
    make_account(ada)
    office.post(change(ada), **PROFILE)
    assert not User.objects.get(pk=ada.pk).is_active
    assert published() == [(EventKind.ACCOUNT_CHANGED, "boss")]
    assert logged(ada) == [("boss", "Changed May log in (now off).")]


def test_a_new_address_of_a_user_concerns_no_process(office: Office) -> None:
    ada = make_user("ada")
    make_account(ada)
    office.post(change(ada), **PROFILE | {"email": "ada@example.org", "is_active": "on"})
    assert User.objects.get(pk=ada.pk).email == "ada@example.org"
    assert published() == []


def test_a_user_without_an_account_can_be_locked_out(office: Office) -> None:
    ada = make_user("ada")
    assert office.post(change(ada), **PROFILE).status_code == 302
    assert not User.objects.get(pk=ada.pk).is_active


def test_a_user_can_be_added(office: Office) -> None:
    office.post(
        add_to(User),
        username="grace",
        usable_password="true",
        password1="a long walk 7",
        password2="a long walk 7",
    )
    assert User.objects.get(username="grace").check_password("a long walk 7")


def test_a_name_of_the_service_can_be_kept_and_not_taken(office: Office) -> None:
    office.post(add_to(User), username="Demo", **NEW_PASSWORD)
    ada, older = make_user("ada"), make_user("market")
    office.post(change(ada), **PROFILE | {"username": "system"})
    office.post(change(older), **PROFILE | {"username": "market", "email": "ann@tickwire.test"})
    names = set(User.objects.exclude(username="boss").values_list("username", "email"))
    assert names == {("ada", "ada@example.com"), ("market", "ann@tickwire.test")}


def test_a_password_can_be_changed_and_the_change_is_logged(office: Office) -> None:
    ada = make_user("ada")
    office.post(password_of(ada), **NEW_PASSWORD)
    ada.refresh_from_db()
    assert ada.check_password("a long walk 7")
    assert [who for who, _ in logged(ada)] == ["boss"]


def test_no_page_shows_any_of_a_password(office: Office) -> None:
    ada = make_user("ada", "a long walk 7")
    salt, digest = ada.password.split("$")[1:]
    for page in (change(ada), password_of(ada)):
        text = text_of(office.get(page))
        assert salt[:6] not in text
        assert digest[:6] not in text


def trusted_with(*codenames: str) -> Office:
    staff = make_user(is_staff=True)
    staff.user_permissions.set(Permission.objects.filter(codename__in=codenames))
    return Office(staff)


def test_staff_cannot_give_themselves_powers() -> None:
    office = trusted_with("view_user", "change_user")
    fields = PROFILE | {
        "username": office.user.username,
        "is_active": "on",
        "is_staff": "on",
        "is_superuser": "on",
    }
    office.post(change(office.user), **fields)
    assert not User.objects.get(pk=office.user.pk).is_superuser


def test_staff_cannot_take_over_a_superuser() -> None:
    root, office = make_user("root", is_superuser=True), trusted_with("view_user", "change_user")
    assert office.post(password_of(root), **NEW_PASSWORD).status_code == 403
    assert office.post(change(root), **PROFILE).status_code == 403


def test_staff_cannot_widen_a_group() -> None:
    group, office = Group.objects.create(name="newsroom"), trusted_with("view_group", "change_group")
    assert office.post(change(group), name="newsroom", permissions=[1]).status_code == 403


@pytest.mark.parametrize("name", ["user", "account", "tier", "apikey"])
def test_what_happened_to_a_customer_cannot_be_deleted(office: Office, name: str) -> None:
    row = next(row for model, row in one_of_each().items() if model._meta.model_name == name)
    assert office.post(address(row, "delete", row.pk), post="yes").status_code == 403
