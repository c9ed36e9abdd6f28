"""Everything that is kept about one person, as a file for them."""

import io
import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any

import msgspec
from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from asgiref.sync import async_to_sync
from django.conf import settings
from django.contrib.admin.models import LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db.models import Q, QuerySet

from accounts.login.factors import factor_name
from accounts.models import Account, AiUsage, StaffRequest, TierRequest, Usage, User
from accounts.open_streams.registry import open_streams
from core.events.outbox import ControlEvent
from core.plain_json import encode
from core.times import moment


# What the log of the back office and the events say of one person.
def log_about(user: User, account: Account | None) -> QuerySet[LogEntry]:
    """What staff did to them and to what is theirs."""
    of_user: list[QuerySet[Any]] = [
        *(model._default_manager.filter(user=user) for model in (EmailAddress, Authenticator, UserSession)),
        User.objects.filter(pk=user.pk),
    ]
    if account is not None:
        of_user += [Account.objects.filter(pk=account.pk), account.keys.all(), *requests_of(account)]
    about = Q(pk__in=[])
    for rows in of_user:
        ids = [str(pk) for pk in rows.values_list("pk", flat=True)]
        about |= Q(content_type=ContentType.objects.get_for_model(rows.model), object_id__in=ids)
    return LogEntry.objects.filter(about).select_related("content_type")


def requests_of(account: Account) -> list[QuerySet[Any]]:
    """Of every kind, also those of rooms above."""
    kinds = [each for each in account._meta.related_objects if issubclass(each.related_model, StaffRequest)]
    return [kind.related_model._default_manager.filter(account=account) for kind in kinds]


def events_by(name: str, account_id: int | None) -> QuerySet[ControlEvent]:
    own = ControlEvent.objects.filter(by=name)
    if name.lower() in settings.ACCOUNT_USERNAME_BLACKLIST:
        # Older than the reservation of this name, under which the service itself acts.
        own = own.filter(account_id=account_id).exclude(account_id=None)
    return own


def without_objects(message: str, pseudonym: str) -> str:
    """Django logs as JSON what a form changed on which row. Our own messages are sentences without names."""
    try:
        changes = json.loads(message)
    except ValueError:
        return message
    for change in changes if isinstance(changes, list) else ():
        for facts in change.values():
            if "object" in facts:
                facts["object"] = pseudonym
    return json.dumps(changes)


def shown_actor(by: str, own: str) -> str:
    """The customer's own name, or only "staff": their login names stay private."""
    return by if by in ("", own) else "staff"


Row = Mapping[str, object]
Section = Callable[[User], Iterable[Row]]

# Without the secret or hash of a key, and without the secret of a second factor.
KEY = ("name", "prefix", "created_at", "last_used_at", "expires_at", "revoked_at")
EVENT = ("kind", "facts", "by", "created_at")
TIER_REQUEST = ("wanted__name", "why", "state", "asked_at", "decided_at", "answer")
LOG = ("action_time", "action_flag", "content_type__model", "object_id")
SESSION = ("ip", "user_agent", "created_at")


class AccountData:
    """The sections of the file. Rooms above add their own."""

    def __init__(self) -> None:
        self.sections: dict[str, Section] = {
            "person": person,
            "email_addresses": lambda user: EmailAddress.objects.filter(user=user).values(
                "email", "verified", "primary"
            ),
            "second_factors": factors_of,
            "sessions": lambda user: UserSession.objects.filter(user=user).values(*SESSION),
            "account": account_of,
            "keys": of_account(lambda account: account.keys.order_by("pk").values(*KEY)),
            "usage": of_account(usage_of),
            "ai_usage": of_account(
                lambda account: AiUsage.objects.filter(account=account).order_by("day").values("day", "used")
            ),
            "tier_requests": of_account(
                lambda account: account.tier_requests.order_by("pk").values(*TIER_REQUEST)
            ),
            "open_streams": of_account(streams_of),
            "events": of_account(events_of),
            "events_by": done_to_others,
            "log_about": logged_about,
            "log_by": logged_by,
            "tier_decisions": decided_by,
            "page_sessions": of_account(
                lambda account: account.page_sessions.order_by("pk").values("created_at", "last_used_at")
            ),
            "rights": rights_of,
        }

    def packed(self, user: User) -> bytes:
        """A ZIP of one JSON file."""
        facts = {name: list(section(user)) for name, section in self.sections.items()}
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as file:
            text = encode({"made_at": datetime.now(UTC), **facts})
            file.writestr("account.json", msgspec.json.format(text))
        return packed.getvalue()


def of_account(rows: Callable[[Account], Iterable[Row]]) -> Section:
    """Nothing where the user has no account yet."""

    def section(user: User) -> Iterator[Row]:
        for account in Account.objects.filter(user=user).select_related("tier"):
            yield from rows(account)

    return section


def person(user: User) -> Iterable[Row]:
    names = ("username", "first_name", "last_name", "email", "date_joined", "last_login")
    rows: Iterable[Row] = User.objects.filter(pk=user.pk).values(
        *names, "is_active", "is_staff", "is_superuser"
    )
    return rows


def factors_of(user: User) -> Iterable[Row]:
    for factor in Authenticator.objects.filter(user=user).order_by("pk"):
        dates = {"created_at": factor.created_at, "last_used_at": factor.last_used_at}
        yield {"type": factor.type, "name": factor_name(factor), **dates}


def events_of(account: Account) -> Iterable[Row]:
    """By `mark` processes tell keys apart; it is the beginning of a hash."""
    own = account.user.get_username()
    for event in ControlEvent.objects.filter(account_id=account.pk).order_by("position").values(*EVENT):
        facts = {name: shown_fact(name, fact) for name, fact in event["facts"].items() if name != "mark"}
        yield event | {"facts": facts, "by": shown_actor(event["by"], own)}


def shown_fact(name: str, fact: object) -> object:
    return moment(round(1000 * fact)) if name.endswith("_at") and isinstance(fact, int | float) else fact


def done_to_others(user: User) -> Iterable[Row]:
    """Without the facts, which are about others."""
    account = Account.objects.filter(user=user).first()
    account_id = None if account is None else account.pk
    done = events_by(user.username, account_id).order_by("position")
    if account_id is not None:
        done = done.exclude(account_id=account_id)
    return done.values("kind", "created_at")


def logged_about(user: User) -> Iterable[Row]:
    """Without who did it."""
    entries = log_about(user, Account.objects.filter(user=user).first()).order_by("pk")
    rows: Iterable[Row] = entries.values(*LOG, "object_repr", "change_message")
    return rows


def logged_by(user: User) -> Iterable[Row]:
    """Without names, which may be those of others."""
    for entry in LogEntry.objects.filter(user=user).order_by("pk").values(*LOG, "change_message"):
        yield entry | {"change_message": without_objects(entry["change_message"], "")}


def decided_by(user: User) -> Iterable[Row]:
    """Without the names of those who asked, and without the answers to them."""
    decided = TierRequest.objects.filter(decided_by=user.username).order_by("pk")
    return decided.values("wanted__name", "state", "decided_at")


def rights_of(user: User) -> Iterable[Row]:
    for name in user.groups.order_by("name").values_list("name", flat=True):
        yield {"group": name}
    for name in user.user_permissions.order_by("pk").values_list("codename", flat=True):
        yield {"permission": name}


def account_of(user: User) -> Iterable[Row]:
    return Account.objects.filter(user=user).values("tier__name", "created_at")


def usage_of(account: Account) -> Iterable[Row]:
    return (
        Usage.objects.filter(account=account)
        .order_by("span", "starts_at")
        .values("span", "starts_at", "requests", "streams")
    )


def streams_of(account: Account) -> Iterator[Row]:
    for stream in async_to_sync(open_streams.of_account)(account.pk):
        details = stream.details
        yield {
            "path": stream.path,
            "opened_at": moment(round(1000 * stream.opened_at)),
            "address": details and details.address,
            "client": details and details.agent,
        }


account_data = AccountData()
