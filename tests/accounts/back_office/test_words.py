"""What the pages of the back office say, and what they leave out."""

from __future__ import annotations

import re

import pytest
from allauth.mfa.models import Authenticator
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, Permission
from django.db.models import Model

import config.urls  # noqa: F401 - it registers the pages
from accounts.models import Account, TierRequest, User
from config.back_office.overview import GROUPS, link_to
from core.events.kinds import EventKind
from signals_feed.models import PERMISSION, Signal
from signals_feed.publishers.requests import PublisherRequest
from status.models import Incident
from tests.factories import make_user

from .office import Office, address, change, list_of, published, text_of
from .rows import one_of_each

pytestmark = pytest.mark.django_db
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)
SAVE = 'name="_save"'
ODD = re.compile(
    r"to change \||[Pp]er day|Is demo|Pnl|Designates|\b\d\d:\d\d:\d\d(?! UTC|\.|\")|\d{4}-\d\d-\d\d \d\d:\d\d"
)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_its_words_are_plain_and_its_times_in_the_one_form(office: Office, model: type[Model]) -> None:
    row = one_of_each()[model]
    for page in (list_of(model), change(row)):
        text = re.sub(r"<(script|input)\b.*?>", "", text_of(office.get(page)))
        assert ODD.findall(text) == []


def test_a_time_to_fill_in_says_its_zone(office: Office) -> None:
    text = text_of(office.get(change(one_of_each()[Incident])))
    assert re.findall(r"(\w+ at|At)\s*(\S*)", re.sub(r"<[^>]+>", " ", text)) == [
        ("Started at", "(UTC)"),
        ("Ended at", "(UTC)"),
        ("At", "(UTC)"),
    ]


def test_a_button_that_adds_a_row_is_in_sentence_case(office: Office) -> None:
    assert "<span>Add another note</span>" in text_of(office.get(change(one_of_each()[Incident])))


@pytest.mark.parametrize("model", [TierRequest, PublisherRequest])
def test_a_request_is_decided_and_not_saved(office: Office, model: type[Model]) -> None:
    text = text_of(office.get(change(one_of_each()[model])))
    assert SAVE not in text
    assert "Accept" in text


def test_what_can_be_edited_can_be_saved(office: Office) -> None:
    assert SAVE in text_of(office.get(change(one_of_each()[Account])))


def test_a_signal_is_called_by_its_symbol(office: Office) -> None:
    signal = one_of_each()[Signal]
    assert re.match(r"Buy EURUSD at 1\.\d{5}$", str(signal))
    assert str(signal) in text_of(office.get(change(signal)))


def test_only_a_cancelled_signal_has_a_reason_for_it(office: Office) -> None:
    signal = one_of_each()[Signal]
    assert "Cancel reason" not in text_of(office.get(change(signal)))
    Signal.objects.update(cancel_reason="wrong symbol")
    assert "Cancel reason" in text_of(office.get(change(signal)))


def test_pages_are_titled_as_in_the_menu(office: Office) -> None:
    entries = [(title, page) for group in GROUPS.values() for title, page, _ in group]
    titles = [
        re.findall(r"<title>\s*(.+?) \|", text_of(office.get(str(link_to(page))))) for _, page in entries
    ]
    assert titles == [[title] for title, _ in entries]


def test_second_factors_have_one_name(office: Office) -> None:
    factor = Authenticator.objects.create(user=make_user("ada"), type="totp", data={})
    pages = (
        list_of(Authenticator),
        change(factor),
        address(factor, "delete", factor.pk),
    )
    chosen = office.act("delete_selected", factor)
    for page in (*(text_of(office.get(each)) for each in pages), text_of(chosen)):
        shown = re.sub(r"<[^>]+>|\s+", " ", re.sub(r"<(head|script).*?</\1>", "", page, flags=re.DOTALL))
        assert "uthenticator" not in shown.replace("Authenticator app", "")
        assert "TOTP" not in shown
    assert "Delete selected second factors" in text_of(office.get(list_of(Authenticator)))


def test_a_list_without_rows_says_which_are_missing(office: Office) -> None:
    assert "No incidents yet" in text_of(office.get(list_of(Incident)))
    assert "No second factors match" in text_of(office.get(f"{list_of(Authenticator)}?q=nobody"))
    assert "0 second factors" in " ".join(text_of(office.get(f"{list_of(Authenticator)}?q=nobody")).split())
    assert "No staff actions yet" in text_of(office.get(list_of(LogEntry)))
    assert "No accounts match" in text_of(office.get(f"{list_of(Account)}?q=nobody"))


def test_the_trail_is_called_as_the_sidebar(office: Office) -> None:
    user = one_of_each()[User]
    trail = re.findall(r"tracking-tight[^>]*>\s*(.*?)\s*</", text_of(office.get(change(user))))
    assert trail[-3:] == ["Customers", "Users", str(user)]


def test_single_permissions_are_folded_away_behind_roles(office: Office) -> None:
    text = text_of(office.get(change(make_user("ada"))))
    places = [
        text.index(words) for words in ("What they may do", 'name="may_publish"', "<details>", "Single perm")
    ]
    assert places == sorted(places)
    assert text.index("<details>") < text.index('name="user_permissions"')


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


def test_staff_without_a_role_are_told_so(office: Office) -> None:
    words = "You have no role yet. A superuser gives you one."
    assert words in text_of(Office(make_user(is_staff=True)).get("/admin/"))
    assert words not in text_of(office.get("/admin/"))


def test_a_refusal_stays_in_the_back_office() -> None:
    answer = Office(make_user(is_staff=True)).get(list_of(User))
    assert answer.status_code == 403
    text = text_of(answer)
    assert "This page is not open to you" in text
    assert 'href="/admin/"' in text
    assert "back_office.css" in text


def test_all_requests_to_staff_stand_together_in_the_sidebar() -> None:
    clerk = make_user("clerk", is_staff=True)
    clerk.groups.add(Group.objects.get(name="Role: support"))
    page = text_of(Office(clerk).get("/admin/"))
    places = [page.index(title) for title in ("Customers", "Tier requests", "Publisher requests", "Users")]
    assert places == sorted(places)
