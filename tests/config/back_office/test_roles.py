"""The ready roles of staff: what each may and, page by page, what it may not."""

from __future__ import annotations

from io import StringIO
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission
from django.core.management import call_command
from django.db.models import Model

import config.urls  # noqa: F401 - it registers the pages
from accounts.models import Account, ApiKey, TierRequest
from accounts.rights import READY_ROLE as LEAD
from config.roles import ROLES
from instruments.models import Instrument
from news.models import NewsItem
from signals_feed.models import Signal
from status.models import Incident
from tests.accounts.back_office.office import Office, change, text_of
from tests.factories import make_user
from tests.reliability.access.permissions.matrix import Matrix
from tests.reliability.access.permissions.people import Role

pytestmark = pytest.mark.django_db
SEES = {
    "curator": ["Drafts", "News items", "News sources", "Calibration", "Signals", "Ledger entries"],
    "support": [
        *("API keys", "Accounts", "Tier requests", "Publisher requests", "Users", "Email addresses", "Tiers"),
        "AI usage",
    ],
    "operator": [
        *("Market status", "Incidents", "Instruments", "Withheld sources", "Trading calendars", "Candles"),
        *("Ingest keys", "Staff actions", "Control events"),
    ],
}
# What a role gets done on the pages of a model, to a customer where rows are somebody's.
DOES: dict[str, dict[type[Model], set[str]]] = {
    "curator": {NewsItem: {"reject_chosen"}, Signal: {"cancel"}},
    "support": {
        Account: {"change"},
        ApiKey: {"add", "change", "roll", "revoke", "revoke_chosen"},
        TierRequest: {"accept", "decline"},
    },
    "operator": {Instrument: {"change"}},
}
ROLE_NAMES = sorted(SEES)
TRIED = [(role, model) for role, done in DOES.items() for model in done]


def names_of(group: Group) -> set[str]:
    held = group.permissions.values_list("content_type__app_label", "codename")
    return {f"{app}.{codename}" for app, codename in held}


def member_of(role: str) -> Office:
    staff = make_user(is_staff=True)
    staff.groups.add(Group.objects.get(name=LEAD + role))
    return Office(staff)


def test_every_installation_has_them_with_exactly_what_they_may() -> None:
    found = {group.name: names_of(group) for group in Group.objects.all()}
    assert found == {name: set(powers) for name, powers in ROLES.items()}


def test_migrating_again_brings_them_back_and_leaves_other_groups_alone() -> None:
    curator, own = Group.objects.get(name=f"{LEAD}curator"), Group.objects.create(name="Curators")
    curator.permissions.set(Permission.objects.filter(codename="delete_user"))
    own.permissions.set(Permission.objects.filter(codename="view_newsitem"))
    Group.objects.get(name=f"{LEAD}support").delete()
    call_command("migrate", verbosity=0, stdout=StringIO())
    assert {name: names_of(Group.objects.get(name=name)) for name in ROLES} == ROLES
    assert names_of(own) == {"news.view_newsitem"}


@pytest.mark.parametrize("role", ROLE_NAMES)
def test_a_role_sees_its_own_pages_and_no_other(role: str) -> None:
    context: Any = member_of(role).get("/admin/").context
    shown = [item["title"] for group in context["sidebar_navigation"] for item in group["items"]]
    assert shown == SEES[role]


@pytest.mark.served
@pytest.mark.parametrize(("role", "model"), TRIED, ids=[f"{role} {of._meta.label}" for role, of in TRIED])
def test_a_role_gets_its_work_done_and_no_more(role: str, model: type[Model]) -> None:
    # What a power opens on all other pages, tests/reliability/access tries one by one.
    matrix = Matrix(model, [Role(role, ROLES[LEAD + role])])
    matrix.try_all()
    assert matrix.holes == []
    assert {kind for _, kind, target in matrix.acted if target == "plain"} >= DOES[role][model]


@pytest.mark.parametrize("role", ROLE_NAMES)
def test_no_role_reaches_a_superuser_or_hands_out_power(role: str) -> None:
    office, boss = member_of(role), make_user("boss", is_superuser=True)
    answer = office.post(change(boss), username="boss", is_active="")
    assert answer.status_code == 403
    assert not [
        name for name in ROLES[LEAD + role] if name.endswith(("_user", "_group")) and "view" not in name
    ]


def test_a_ready_role_cannot_be_edited_because_migrating_would_undo_it(office: Office) -> None:
    group = Group.objects.get(name=f"{LEAD}curator")
    assert office.post(change(group), name=group.name, permissions=[1]).status_code == 403
    assert names_of(group) == ROLES[group.name]
    # Within its own pages a role writes all there is.
    incident = Incident.objects.create(title="No prices of gold")
    assert 'name="notes-0-text"' in text_of(member_of("operator").get(change(incident)))
