"""Users and their accounts, the keys that open the API, and their usage."""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import itemgetter
from typing import TYPE_CHECKING, Any, ClassVar, Self

from django.conf import settings
from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.auth.models import AbstractUser, Group
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.contrib.sessions.models import Session
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import connection, models, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from accounts.key_text import MARK_BYTES
from accounts.signals import name_chosen
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent
from core.times import moment

# Requests of customers that staff accept or decline.
LONGEST_REASON = 500


class RequestState(models.TextChoices):
    OPEN = "open", "waiting"
    ACCEPTED = "accepted", "accepted"
    DECLINED = "declined", "declined"
    WITHDRAWN = "withdrawn", "withdrawn"


class RequestQuerySet(models.QuerySet[Any]):
    def open(self) -> Self:
        return self.filter(state=RequestState.OPEN)


class StaffRequest(models.Model):
    State = RequestState

    why = models.CharField(max_length=LONGEST_REASON)
    state = models.CharField(max_length=9, choices=RequestState, default=RequestState.OPEN)
    asked_at = models.DateTimeField(default=timezone.now)
    decided_at = models.DateTimeField(null=True, blank=True)
    answer = models.CharField(max_length=LONGEST_REASON, blank=True)

    objects: ClassVar[RequestQuerySet] = RequestQuerySet.as_manager()  # type: ignore[assignment]

    class Meta:
        abstract = True
        ordering = ("-pk",)

    def decide(self, state: RequestState, *, by: Any, answer: str = "") -> bool:
        """Of two simultaneous decisions, the second returns False."""
        waiting = type(self).objects.open().filter(pk=self.pk)
        if not waiting.update(state=state, decided_at=timezone.now(), decided_by=by, answer=answer):
            return False
        self.refresh_from_db()
        return True


def request_constraints(name: str) -> tuple[models.BaseConstraint, ...]:
    """Of the table of one kind of request, by whose name each constraint begins."""
    is_open = Q(state="open")
    return (
        models.UniqueConstraint(name=f"{name}_one_open", fields=("account",), condition=is_open),
        models.CheckConstraint(
            name=f"{name}_state_is_known",
            condition=Q(state__in=("open", "accepted", "declined", "withdrawn")),
        ),
        models.CheckConstraint(
            name=f"{name}_decided_once",
            condition=Q(state="open", decided_at=None) | (~is_open & ~Q(decided_at=None)),
        ),
        models.CheckConstraint(
            name=f"{name}_declined_with_words", condition=~Q(state="declined") | ~Q(answer="")
        ),
    )


# How a name looks, to find names that could be mistaken for each other: the letters of Unicode's
# confusables.txt that occur in names. The rest needs no table: new names are ASCII, and NFKD splits off
# accents, widths and styles.
FOREIGN = {
    "авекмнорстухіјѕһԁԛԝӏүѵг": "abekmhopctyxijshdqwlyvr",
    "αβγεζηικμνορτυχω": "abyeznikuvoptuxw",
    "ıłøđħ": "ilodh",
}
ALIKE = str.maketrans("".join(FOREIGN) + "01", "".join(FOREIGN.values()) + "ol")


def look_of(name: str) -> str:
    """Without case, accents, punctuation and invisible characters; one letter for all that look alike."""
    plain = unicodedata.normalize("NFKD", name).casefold().translate(ALIKE)
    # A small L and a capital i are one stroke.
    letters = "".join(filter(str.isalnum, plain)).replace("i", "l")
    return letters.replace("rn", "m").replace("vv", "w")


# Usernames, and which of them new users cannot have.
if TYPE_CHECKING:
    NameField = models.CharField[str, str]
else:
    NameField = models.CharField

PSEUDONYM = "deleted-"
"""What remains of a deleted account has this name."""
PUBLISHER = "publisher-"
"""The public ledger of signals names a user like this, so that it holds no real usernames."""
PSEUDONYMS = (PSEUDONYM, PUBLISHER)
ASCII_ONLY = "Use only English letters, digits and @ . + - _, because other letters can look like these."
"""For new names: publishers are known by theirs, and none may look like another's."""
LONGEST_NEW = 30
TOO_LONG = f"Use at most {LONGEST_NEW} characters."
"""For new names: they stand in lists, on charts and in pictures."""


RESERVED = "This username is reserved for the service itself: choose another one."
LOOKS_LIKE_ANOTHER = (
    "This username looks like that of a publisher: choose one that differs in more than case, punctuation and"
    " letters that look alike, such as o and 0, or l and 1."
)
OURS = "tickwire"


def is_reserved(name: str) -> bool:
    look = look_of(name)
    return (
        look in map(look_of, settings.ACCOUNT_USERNAME_BLACKLIST)
        or look_of(OURS) in look
        or look.startswith(tuple(map(look_of, PSEUDONYMS)))
    )


def fault_of_new(name: str, user_id: int | None = None) -> str:
    """Why a new user, or this one, cannot have this name; empty if they can."""
    if is_reserved(name):
        return RESERVED
    if not name.isascii():
        return ASCII_ONLY
    if len(name) > LONGEST_NEW:
        return TOO_LONG
    answers = name_chosen.send(User, name=name, user_id=user_id)
    return next((fault for _, fault in answers if fault), "")


class UsernameField(NameField):
    """Refuses misleading names wherever users are created or renamed. Existing names stay."""

    def __init__(self) -> None:
        super().__init__(
            "username",
            max_length=150,
            unique=True,
            help_text=f"At most {LONGEST_NEW} letters, digits and @ . + - _ only.",
            # A name of dots alone would be lost in the address of a page.
            validators=[
                UnicodeUsernameValidator(),
                RegexValidator(r"[^\W_]", "Use at least one letter or digit."),
            ],
            error_messages={"unique": "A user with that username already exists."},
        )

    def deconstruct(self) -> Any:
        """In migrations it is what it was before: the table is the same."""
        name, _, arguments, options = super().deconstruct()
        options["validators"] = options["validators"][:1]
        options["help_text"] = "At most 150 letters, digits and @ . + - _ only."
        return name, "django.db.models.CharField", arguments, options

    def clone(self) -> UsernameField:
        return UsernameField()

    def validate(self, value: Any, model_instance: models.Model | None) -> None:
        super().validate(value, model_instance)
        fault = fault_of_new(value, None if model_instance is None else model_instance.pk)
        if fault and not has_name(model_instance, value):
            raise ValidationError(fault)


def has_name(user: models.Model | None, name: str) -> bool:
    """Whether the user is stored with this name."""
    if user is None or user.pk is None:
        return False
    return type(user)._default_manager.filter(pk=user.pk, username=name).exists()


# Users, their accounts and tiers, who asked for which tier, and attempts to log in.
class User(AbstractUser):
    """A person who can log in."""

    username = UsernameField()
    email = models.EmailField("email", blank=True)
    is_active = models.BooleanField(
        "may log in",
        default=True,
        help_text="Turn this off to lock somebody out; their keys stop working as well.",
    )
    is_staff = models.BooleanField(
        "staff",
        default=False,
        help_text="May log in to the back office, and do there what their roles allow.",
    )
    is_superuser = models.BooleanField(
        "superuser", default=False, help_text="May do everything, and decides what others may do."
    )
    groups = models.ManyToManyField(  # type: ignore[assignment]
        Group,
        verbose_name="roles",
        blank=True,
        related_name="user_set",
        related_query_name="user",
        help_text="What a member of staff may do.",
    )
    changed_by: str | None = None
    """The person who sets a new password, if not the user."""
    _password: str | None
    """A new one that is not saved yet."""

    def save(self, *args: Any, **kwargs: Any) -> None:
        """A new password ends the other sessions, and with them what their pages have open."""
        has_new_password = self._password is not None
        with transaction.atomic():
            super().save(*args, **kwargs)
            if has_new_password:
                for account in Account.objects.filter(user=self):
                    ControlEvent.objects.publish(
                        EventKind.PASSWORD_CHANGED, by=self.changed_by or self.username, account=account.pk
                    )


TIER_LIMITS = {
    "requests_per_minute": "Requests a minute",
    "streams": "Streams at once",
    "ai_calls_per_day": "AI calls a day",
    "archive": "Archive",
}


class Tier(models.Model):
    """What an account may use; staff edit the limits."""

    name = models.SlugField(max_length=20, unique=True)
    rank = models.PositiveSmallIntegerField(default=0, help_text="Order in lists, lowest first.")
    requests_per_minute = models.PositiveIntegerField("requests a minute")
    streams = models.PositiveIntegerField("streams at once", help_text="WebSocket streams of all keys.")
    ai_calls_per_day = models.PositiveIntegerField("AI calls a day")
    archive = models.BooleanField(
        default=False,
        db_default=False,
        help_text="Whether keys may download the archive of ticks and candles.",
    )
    price = models.CharField(
        max_length=40,
        blank=True,
        default="",
        db_default="",
        help_text="On the pricing page, such as “$49 a month”. Empty: “On request”, or “No charge” for Free.",
    )

    class Meta:
        ordering = ("rank", "name")
        constraints = (
            models.CheckConstraint(name="tier_allows_requests", condition=Q(requests_per_minute__gte=1)),
        )

    def __str__(self) -> str:
        return self.name.title()

    def limits(self) -> list[tuple[str, int | str]]:
        """The title of each limit, as pages show it, and the limit."""
        return [(title, in_words(getattr(self, name))) for name, title in TIER_LIMITS.items()]


def in_words(limit: int) -> int | str:
    return ("no", "yes")[limit] if isinstance(limit, bool) else limit


class AccountManager(models.Manager["Account"]):
    def for_user(self, user: User) -> Account:
        """The user's account, opened on the Free tier where there is none yet."""
        first: dict[str, Any] = {"tier": lambda: Tier.objects.get(name="free")}
        account, _ = self.select_related("tier").get_or_create(user=user, defaults=first)
        return account


class Account(models.Model):
    """One customer: all keys of an account share its tier's limits."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="account")
    tier = models.ForeignKey(Tier, on_delete=models.PROTECT, related_name="accounts")
    is_demo = models.BooleanField("demo", default=False, editable=False)
    visitor_from = models.CharField(
        max_length=43,
        blank=True,
        db_default="",
        editable=False,
        help_text="Of the demo's visitors: their network.",
    )
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    objects: ClassVar[AccountManager] = AccountManager()

    def __str__(self) -> str:
        return str(self.user)

    @property
    def is_visitor(self) -> bool:
        return self.visitor_from != ""


class TierRequest(StaffRequest):
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="tier_requests")
    wanted = models.ForeignKey(Tier, on_delete=models.PROTECT, related_name="+")
    decided_by = models.CharField(max_length=150, blank=True)

    class Meta(StaffRequest.Meta):
        constraints = request_constraints("tier_request")

    def __str__(self) -> str:
        return f"{self.account}: {self.wanted}"


class Attempt(models.Model):
    """The table of Django's cache, shared by all processes. It holds what allauth's rate limits count
    (attempts to log in, sign up, reset a password or change a second factor), one-time codes that were used,
    the login link of the demo's staff, and whether a process is pruning. It is as `createcachetable` makes
    it, and a model so that it is migrated like any other."""

    cache_key = models.CharField(max_length=255, primary_key=True)
    value = models.TextField()
    expires = models.DateTimeField(db_index=True)

    def __str__(self) -> str:
        return self.cache_key


# Access to the API: keys, and the browser sessions whose pages use it.
class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def usable(self, at: datetime) -> ApiKeyQuerySet:
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=at), revoked_at=None)

    def ended(self, at: datetime) -> ApiKeyQuerySet:
        return self.filter(Q(expires_at__lte=at) | Q(revoked_at__isnull=False))

    def of_active_users(self) -> ApiKeyQuerySet:
        return self.filter(account__user__is_active=True)


class Key(models.Model):
    """What keys of all kinds have in common. Only a keyed hash of the secret is stored."""

    name = models.CharField(max_length=60)
    prefix = models.CharField(max_length=16, unique=True, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    # Empty in rows that the version without it made, until they are used.
    pepper_name = models.CharField(max_length=12, default="", db_default="", editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        abstract = True
        ordering = ("-created_at", "-pk")

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    @property
    def mark(self) -> str:
        """What the events of a key carry, by which all processes know that there is such a key."""
        return self.digest[: 2 * MARK_BYTES]

    def state(self, at: datetime) -> str:
        return "revoked" if self.revoked_at else "active"


class ApiKey(Key):
    """Opens the API for an account."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="keys")
    expires_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = ApiKeyQuerySet.as_manager()

    class Meta(Key.Meta):
        verbose_name = "API key"
        constraints = (
            models.CheckConstraint(
                name="api_key_digest_is_sha256", condition=Q(digest__regex=r"^[0-9a-f]{64}$")
            ),
        )

    def state(self, at: datetime) -> str:
        if self.revoked_at or self.expires_at is None:
            return super().state(at)
        return "rolled" if self.expires_at > at else "expired"


class PageSession(models.Model):
    """It ends with the browser's session, and its tokens open nothing afterwards."""

    session_key = models.CharField(max_length=40, unique=True, editable=False)
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="page_sessions")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(default=timezone.now, editable=False)

    def __str__(self) -> str:
        return f"a session of {self.account}"

    def session(self) -> Session | None:
        """The browser's session, while it lasts and is still this account's."""
        found = Session.objects.filter(session_key=self.session_key, expire_date__gt=timezone.now()).first()
        return found if found is not None and self._is_ours(found.get_decoded()) else None

    def _is_ours(self, session: dict[str, Any]) -> bool:
        """As Django decides who is logged in; a new password ends all sessions but the one it was set in."""
        user = self.account.user
        if self.account.is_visitor:
            return SESSION_KEY not in session
        shown = session.get(HASH_SESSION_KEY, "")
        good = (user.get_session_auth_hash(), *user.get_session_auth_fallback_hash())
        return session.get(SESSION_KEY) == str(user.pk) and any(
            constant_time_compare(shown, each) for each in good
        )


def end_page_sessions(instance: Session, **_: Any) -> None:
    """At a logout, an end from elsewhere, or a new session key after a login or a change of password."""
    for page_session in PageSession.objects.filter(session_key=instance.session_key):
        page_session.delete()
        ControlEvent.objects.publish(EventKind.SESSION_ENDED, account=page_session.account_id)


# What accounts used, by minute and by day, for people to look at. Limits are counted elsewhere, exactly.
class AiUsage(models.Model):
    """AI calls that an account made on one UTC day."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="ai_usage")
    day = models.DateField()
    used = models.PositiveIntegerField(default=0)

    class Meta:
        verbose_name = verbose_name_plural = "AI usage"
        constraints = (models.UniqueConstraint(fields=("account", "day"), name="ai_usage_one_row_a_day"),)

    def __str__(self) -> str:
        return f"{self.used} on {self.day}"


class VisitorAiUsage(models.Model):
    """AI calls of all visitors from one network on one UTC day. Their accounts come and go with cookies."""

    network = models.CharField(max_length=43)
    day = models.DateField()
    used = models.PositiveIntegerField(default=0)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("network", "day"), name="visitor_ai_usage_one_row_a_day"),
        )

    def __str__(self) -> str:
        return f"{self.used} on {self.day}"


MINUTE_S, DAY_S = 60, 86_400


@dataclass(frozen=True, slots=True)
class UsageCounts:
    """What was used in a while."""

    requests: int = 0
    streams: int = 0

    def more(self, other: UsageCounts) -> UsageCounts:
        return UsageCounts(self.requests + other.requests, self.streams + other.streams)


MINUTES_KEPT = timedelta(days=2)
DAYS_KEPT = timedelta(days=400)
Minute = tuple[int, int]
"""An account, and the epoch second in which its minute began."""


class UsageManager(models.Manager["Usage"]):
    @transaction.atomic
    def add(self, counts: Mapping[Minute, UsageCounts]) -> None:
        """Add to what other processes have counted in the same minutes and days."""
        # An account may have been deleted since, and its usage with it.
        accounts = Account.objects.filter(pk__in={account for account, _ in counts})
        known = set(accounts.values_list("pk", flat=True))
        rows: dict[tuple[str, int, int], UsageCounts] = {}
        for (account, at), used in counts.items():
            if account in known:
                for row in (("minute", account, at), ("day", account, at // DAY_S * DAY_S)):
                    rows[row] = rows.get(row, UsageCounts()).more(used)
        if not rows:
            return
        adapt, table = connection.ops.adapt_datetimefield_value, self.model._meta.db_table
        with connection.cursor() as cursor:
            cursor.executemany(
                f"INSERT INTO {table} (span, account_id, starts_at, requests, streams)"  # noqa: S608 - our own name
                " VALUES (%s, %s, %s, %s, %s) ON CONFLICT (account_id, span, starts_at) DO UPDATE"
                f" SET requests = {table}.requests + excluded.requests,"
                f" streams = {table}.streams + excluded.streams",
                # Sorted, so that two processes never wait for each other in a circle.
                [
                    (span, account, adapt(moment(1000 * at)), used.requests, used.streams)
                    for (span, account, at), used in sorted(rows.items(), key=itemgetter(0))
                ],
            )

    def prune(self, now: datetime) -> None:
        self.filter(span="minute", starts_at__lt=now - MINUTES_KEPT).delete()
        self.filter(span="day", starts_at__lt=now - DAYS_KEPT).delete()


class Usage(models.Model):
    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="usage", db_index=False)
    span = models.CharField(max_length=6, choices=[("minute", "minute"), ("day", "day")])
    starts_at = models.DateTimeField()
    requests = models.PositiveIntegerField(default=0)
    streams = models.PositiveIntegerField(default=0, help_text="Streams that were opened.")

    objects = UsageManager()

    class Meta:
        verbose_name_plural = "usage"
        constraints = (
            models.UniqueConstraint(fields=("account", "span", "starts_at"), name="usage_one_row_a_span"),
        )
        indexes = (models.Index(fields=("span", "starts_at"), name="usage_by_age"),)

    def __str__(self) -> str:
        return f"{self.requests} requests in the {self.span} of {self.starts_at}"
