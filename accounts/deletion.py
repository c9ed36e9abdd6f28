"""Deleting and locking accounts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib.admin.models import LogEntry
from django.contrib.sessions.models import Session
from django.db import transaction
from django.db.models import ProtectedError

from accounts.models import PSEUDONYM, Account, ApiKey, PageSession, TierRequest, User
from accounts.signals import account_deleted
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent

from .own_data import done_to_others, events_by, log_about, without_objects

# Deletes an account: its keys stop working, and no table names its owner, except rows that cannot change.
# What must stay, such as signals and the log of staff actions, gets a pseudonym. Staff find a key by this
# part; the name before it is the owner's own text.
KEY_PREFIX = re.compile(r"\(\w+…\)$")


class DeletionRefused(Exception):
    """The account cannot be deleted; the message is for its owner."""


def refuse_deletion(user: User) -> None:
    account = Account.objects.filter(user=user).first()
    if account is not None and (account.is_demo or account.is_visitor):
        raise DeletionRefused("This account belongs to the demo, which other people use, too.")
    others = User.objects.filter(is_superuser=True, is_active=True).exclude(pk=user.pk)
    if user.is_superuser and user.is_active and not others.exists():
        raise DeletionRefused("This is the last superuser. Create another one first: only a superuser can.")


@transaction.atomic
def delete_account(user: User) -> str:
    """Returns the pseudonym of what stays; empty if nothing does."""
    # If two superusers leave at once, one sees that the other has left.
    list(User.objects.select_for_update().filter(is_superuser=True).order_by("pk"))
    # Issuing a key or changing permissions locks this row too, and waits.
    user = User.objects.select_for_update().get(pk=user.pk)
    account = Account.objects.select_for_update().filter(user=user).first()
    refuse_deletion(user)
    name, pseudonym = user.username, free_pseudonym(user)
    rename_in_log(user, account, pseudonym)
    TierRequest.objects.filter(decided_by=name).update(decided_by=pseudonym)
    revoked = [] if account is None else list(account.keys.filter(revoked_at=None))
    endings: list[Any] = [] if account is None else account_deleted.send(Account, account=account)
    sessions = UserSession.objects.filter(user=user).values_list("session_key", flat=True)
    pages = [] if account is None else list(account.page_sessions.values_list("session_key", flat=True))
    # Deleting a row takes its number from the object.
    account_id = None if account is None else account.pk
    is_kept = not take_away(user, account, pseudonym, {*sessions, *pages})
    forget_in_events(name, pseudonym, account_id)
    # Events come last: a transaction that has published must not wait for a row.
    for _, announce in endings:
        announce(by=pseudonym)
    tell(account_id, revoked, pseudonym)
    return pseudonym if is_kept else ""


def free_pseudonym(user: User) -> str:
    """Sign-up refuses such names, but a user may be older than that rule."""
    name = f"{PSEUDONYM}{user.pk}"
    while User.objects.filter(username=name).exists():
        name += "-"
    return name


def take_away(user: User, account: Account | None, pseudonym: str, sessions: set[str]) -> bool:
    """Whether nothing refers to the user any more."""
    Session.objects.filter(session_key__in=sessions).delete()
    if account is not None:
        account.delete()
    for model in (EmailAddress, Authenticator, UserSession):
        model._default_manager.filter(user=user).delete()
    if not LogEntry.objects.filter(user=user).exists():
        try:
            with transaction.atomic():
                user.delete()
        except ProtectedError:
            pass
        else:
            return True
    user.groups.clear()
    user.user_permissions.clear()
    user.username, user.email, user.first_name, user.last_name = pseudonym, "", "", ""
    user.is_active = user.is_staff = user.is_superuser = False
    user.last_login = None
    user.set_unusable_password()
    user.save()
    return False


def rename_in_log(user: User, account: Account | None, pseudonym: str) -> None:
    """What staff did to this account stays on record, without the name."""
    for entry in log_about(user, account):
        tail = KEY_PREFIX.search(entry.object_repr)
        entry.object_repr = pseudonym + (f" {tail[0]}" if tail else "")
        entry.change_message = without_objects(entry.change_message, pseudonym)
        entry.save(update_fields=["object_repr", "change_message"])


def forget_in_events(name: str, pseudonym: str, account_id: int | None) -> None:
    """The rows stay, because processes recognise the database by them."""
    events_by(name, account_id).update(by=pseudonym)
    for event in ControlEvent.objects.filter(account_id=account_id, kind=EventKind.TIER_DECLINED):
        event.facts["answer"] = ""
        event.save(update_fields=["facts"])


def tell(account_id: int | None, revoked: list[ApiKey], by: str) -> None:
    if account_id is None:
        return
    for key in revoked:
        facts = {"account": account_id, "key": key.pk, "prefix": key.prefix, "mark": key.mark}
        ControlEvent.objects.publish(EventKind.KEY_REVOKED, by=by, **facts)
    ControlEvent.objects.publish(EventKind.ACCOUNT_CHANGED, by=by, account=account_id, active=False)


# A person who is locked out has to log in again once unlocked, and so does a thief with their session.
def end_sessions(user: User) -> None:
    """Their pages' streams end with them."""
    logins, pages = UserSession.objects.filter(user=user), PageSession.objects.filter(account__user=user)
    keys = {row.session_key for rows in (logins, pages) for row in rows}
    Session.objects.filter(session_key__in=keys).delete()
    logins.delete()


# What stays of a person when their account is deleted, for the page that asks and the one after it.
# Publishing and closing one's own signal affects no other account.
OWN_SIGNALS = (EventKind.SIGNAL_PUBLISHED, EventKind.SIGNAL_CLOSED)


def has_acted_as_staff(user: User) -> bool:
    if user.is_staff:
        return True
    done = any(row["kind"] not in OWN_SIGNALS for row in done_to_others(user))
    return done or LogEntry.objects.filter(user=user).exists()


STAYING: dict[str, Callable[[User], bool]] = {"staff_record": has_acted_as_staff}
"""By the name that pages use. Rooms above add their own."""


def staying_of(user: User) -> dict[str, bool]:
    return {name: stays(user) for name, stays in STAYING.items()}
