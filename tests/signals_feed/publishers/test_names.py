"""Nobody looks like a publisher, and nobody gets away from a record by another name."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import pytest
from django.apps import apps
from django.core.exceptions import ValidationError
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client

from accounts.deletion import delete_account
from accounts.models import Account, User
from accounts.rights import publishing_right
from demo.people import PUBLISHERS, seed_people
from signals_feed.api.publishers import read_scorecard
from signals_feed.ledger.names import HeldName, digest_of, digests_of, is_taken
from signals_feed.publishers.lookup import find
from signals_feed.publishing import remove_demo
from signals_feed.rules import SignalRefused
from tests.accounts.back_office.office import Office, add_to, change, text_of
from tests.accounts.login.factors import PASSWORD
from tests.factories import make_account, make_instrument, make_user
from tests.signals_feed.published_signals import make_published, make_published_by_name, make_publisher

pytestmark = [pytest.mark.django_db, pytest.mark.services]
ALIKE = ("fred.", "fr-ed", "@fred")
# In capitals; with a Cyrillic letter, an accent, a space of no width; in full width.
FOREIGN = ("FRED", "fr\u0435d", "fre\u0301d", "fr\u200bed", "\uff46\uff52\uff45\uff44")
REFUSED = "looks like that of a publisher"


@pytest.fixture
def fred() -> User:
    make_instrument()
    user = make_publisher("fred")
    make_published(user=user)
    return user


def sign_up(name: str) -> str:
    form = {"username": name, "email": "new@example.com", "password1": PASSWORD, "password2": PASSWORD}
    return Client().post("/accounts/signup/", form).text


def add_user(name: str) -> str:
    boss = User.objects.filter(is_superuser=True).first() or make_user(is_staff=True, is_superuser=True)
    form = {"username": name, "password1": PASSWORD, "password2": PASSWORD, "usable_password": "true"}
    return text_of(Office(boss).post(add_to(User), **form))


def rename(name: str) -> str:
    boss = User.objects.filter(is_superuser=True).first() or make_user(is_staff=True, is_superuser=True)
    other = User.objects.filter(username="other").first() or make_user("other")
    return text_of(Office(boss).post(change(other), username=name, is_active="on"))


def create_superuser(name: str) -> str:
    return said_of(lambda: call_command("createsuperuser", username=name, email="", interactive=False))


def issue_key(name: str) -> str:
    return said_of(lambda: call_command("issue_key", name))


def said_of(act: Callable[[], object]) -> str:
    with pytest.raises(CommandError) as refused:
        act()
    return str(refused.value)


@pytest.mark.parametrize("make", [sign_up, add_user, rename, create_superuser, issue_key])
def test_no_way_of_getting_a_name_gives_one_that_looks_like_a_publisher_s(
    make: Callable[[str], str], fred: User
) -> None:
    for name in ALIKE:
        assert REFUSED in make(name), name
    for name in FOREIGN:
        make(name)
    names = User.objects.filter(is_superuser=False).values_list("username", flat=True)
    assert set(names) <= {"fred", "other"}


def test_who_looks_like_a_publisher_already_publishes_nothing(fred: User) -> None:
    twin = make_publisher("fr-ed")
    with pytest.raises(SignalRefused, match="ask staff"):
        make_published(user=twin)
    # Nothing is held for them either.
    assert set(HeldName.objects.values_list("user", flat=True)) == {fred.pk}


def renamed(user: User, office: Office, name: str) -> None:
    office.post(change(user), username=name, is_active="on")
    assert User.objects.get(pk=user.pk).username == name


def test_card_is_found_by_every_former_name_which_nobody_else_gets(fred: User, office: Office) -> None:
    renamed(fred, office, "freddy")
    renamed(fred, office, "karl")
    for former in ("fred", "freddy"):
        moved = Client().get(f"/publishers/{former}?page=2")
        assert (moved.status_code, moved["Location"]) == (301, "/publishers/karl?page=2")
        # Otherwise a browser would go in circles after the name was taken back.
        assert moved["Cache-Control"] == "no-cache"
        picture = Client().get(f"/publishers/{former}/scorecard.svg")
        assert (picture.status_code, ">karl<" in picture.text) == (200, True)
        assert Client().get(f"/publishers/{former}/marks").status_code == 200
        assert REFUSED in sign_up(former)
    renamed(fred, office, "fred")
    assert Client().get("/publishers/fred").status_code == 200


def test_database_lets_no_publisher_take_a_name_that_is_not_held_for_them(fred: User) -> None:
    make_user("other")
    for name in ("karl", "Fred"):
        with pytest.raises(IntegrityError, match="held for them"), transaction.atomic():
            User.objects.filter(pk=fred.pk).update(username=name)
    User.objects.filter(username="other").update(username="karl")


def test_publisher_renamed_by_code_does_not_get_the_look_of_another(fred: User) -> None:
    other = make_publisher("other")
    make_published(user=other)
    other.username = "fr.ed"
    with pytest.raises(ValidationError, match=REFUSED):
        other.save()


def lock(user: User, office: Office) -> None:
    office.post(change(user), username=user.username)
    assert not User.objects.get(pk=user.pk).is_active


def take_right(user: User, office: Office) -> None:
    publishing_right.switch(user, is_held=False, by="boss")


def delete(user: User, office: Office) -> None:
    delete_account(user)


@pytest.mark.parametrize("act", [lock, take_right, delete])
def test_record_stays_in_the_list_and_on_its_card(
    act: Callable[[User, Office], None], fred: User, office: Office
) -> None:
    make_account(fred)
    act(fred, office)
    name = User.objects.get(pk=fred.pk).username
    assert f'data-publisher="{name}"' in Client().get("/publishers").text
    assert Client().get(f"/publishers/{name}").status_code == 200
    assert Client().get(f"/publishers/{name}/scorecard.svg").status_code == 200
    assert b'"active":1' in (read_scorecard(name) or b"")
    assert REFUSED in sign_up("fr.ed")


def test_no_former_name_leads_to_a_deleted_account(fred: User, office: Office) -> None:
    renamed(fred, office, "karl")
    delete_account(fred)
    assert (find("fred"), find("karl")) == (None, None)
    # The pseudonym is the only name that is known of them.
    assert HeldName.objects.filter(user=fred).count() == len(digests_of(f"deleted-{fred.pk}"))


def test_demo_comes_back_under_its_names_and_leaves_real_ones_alone() -> None:
    real = make_publisher(PUBLISHERS[0].replace("_", "-"))
    make_published(user=real)
    HeldName.objects.create(digest=digest_of(PUBLISHERS[1]))
    seed_people()
    names = set(Account.objects.filter(is_demo=True).values_list("user__username", flat=True))
    assert set(PUBLISHERS) - names == {PUBLISHERS[0]}
    demo = User.objects.get(username=PUBLISHERS[1])
    make_published(user=demo)
    remove_demo([demo.pk])
    assert not is_taken(PUBLISHERS[1], None)


def migrate_names() -> None:
    migration: Any = import_module("signals_feed.migrations.0015_names_of_before")
    migration.hold_names(apps, None)


def test_names_of_before_are_held_and_those_that_look_alike_stay(office: Office) -> None:
    make_instrument()
    twin, fred, gone, alike = (make_publisher(name) for name in ("fr.ed", "Fred", "gone", "g-one"))
    for user in (twin, fred, gone, alike):
        make_published_by_name(user=user)
    delete_account(gone)
    User.objects.filter(pk=twin.pk).update(username="fr-ed")
    # As the code of before wrote it.
    HeldName.objects.create(digest=digest_of("fred"))
    migrate_names()
    assert not is_taken("Fred", fred.pk)
    make_published(user=twin)
    renamed(twin, office, "karl")
    assert [find(name).name for name in ("fr.ed", "fr-ed", "Fred")] == ["karl", "karl", "Fred"]  # type: ignore[union-attr]
    assert all(is_taken(name, None) for name in ("fr_ed", "g.one"))
    assert find("gone") is None
