"""Users, their accounts and tiers, who asked for which tier, and attempts to log in."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import AbstractUser, Group
from django.db import models, transaction
from django.db.models import Q
from django.utils import timezone

from core.events.kinds import EventKind
from core.events.outbox import ControlEvent

from .requests import StaffRequest, request_constraints
from .usernames import UsernameField


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
    """Who sets a new password, if not they themselves."""
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
