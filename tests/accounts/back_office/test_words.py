"""What the pages of the back office say, and what they leave out."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import Group, Permission

import config.urls  # noqa: F401 - it registers the pages
from accounts.models import User
from core.events.kinds import EventKind
from signals_feed.models import PERMISSION
from tests.factories import make_user

from .office import Office, change, list_of, published, text_of

pytestmark = pytest.mark.django_db


def test_who_is_no_superuser_sees_no_single_permissions() -> None:
    clerk = make_user("clerk", is_staff=True)
    clerk.user_permissions.set(Permission.objects.filter(codename__in=("view_user", "change_user")))
    text = text_of(Office(clerk).get(change(make_user("ada"))))
    assert "Single permissions" not in text
    assert "user_permissions" not in text
    assert 'name="may_publish"' not in text
    assert "May publish signals" in text


@pytest.mark.parametrize(("power", "is_led_there"), [("view_user", False), ("change_user", True)])
def test_only_who_may_set_a_password_is_led_there(power: str, is_led_there: bool) -> None:
    clerk = make_user("clerk", is_staff=True)
    clerk.user_permissions.set(Permission.objects.filter(codename__in=("view_user", power)))
    assert ("../password/" in text_of(Office(clerk).get(change(make_user("ada"))))) is is_led_there


def test_a_superuser_gives_roles_and_the_right_to_publish_on_one_page(office: Office) -> None:
    ada, role = make_user("ada"), Group.objects.get(name="Role: support")
    fields = {"username": "ada", "email": "ada@tickwire.test", "is_active": "on"}
    office.post(change(ada), **fields, groups=role.pk, may_publish="on")
    assert User.objects.get(pk=ada.pk).has_perm(PERMISSION)
    assert list(ada.groups.all()) == [role]
    office.post(change(ada), **fields, may_publish="on")
    assert User.objects.get(pk=ada.pk).has_perm(PERMISSION)
    office.post(change(ada), **fields)
    assert not User.objects.get(pk=ada.pk).has_perm(PERMISSION)
    assert published() == [(EventKind.PUBLISHING_GRANTED, "boss"), (EventKind.PUBLISHING_REVOKED, "boss")]


def test_a_refusal_stays_in_the_back_office() -> None:
    answer = Office(make_user(is_staff=True)).get(list_of(User))
    assert answer.status_code == 403
    text = text_of(answer)
    assert "This page is not open to you" in text
    assert 'href="/admin/"' in text
    assert "back_office.css" in text
