"""Who you are: user, account, tier and keys."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, ClassVar

from django.conf import settings
from django.contrib.auth.models import AbstractUser
from django.db import models, transaction
from django.db.models import F, Q
from django.utils import timezone

from .attempts import Attempt
from .outbox import ControlEvent
from .page_sessions import PageSession
from .tier_requests import TierRequest
from .usage import Usage

__all__ = [
    "Account",
    "AiUsage",
    "ApiKey",
    "Attempt",
    "ControlEvent",
    "PageSession",
    "Tier",
    "TierRequest",
    "Usage",
    "User",
]


class User(AbstractUser):
    """A person who can log in."""

    _password: str | None
    """A new one that is not saved yet."""

    def save(self, *args: Any, **kwargs: Any) -> None:
        """A new password ends the other sessions, and with them what their pages have open."""
        has_new_password = self._password is not None
        with transaction.atomic():
            super().save(*args, **kwargs)
            if has_new_password:
                for account in Account.objects.filter(user=self):
                    ControlEvent.objects.publish("password.changed", by=self.username, account=account.pk)


class Tier(models.Model):
    """What an account may use; staff edit the limits."""

    name = models.SlugField(max_length=20, unique=True)
    rank = models.PositiveSmallIntegerField(default=0, help_text="Order in lists, lowest first.")
    requests_per_minute = models.PositiveIntegerField()
    streams = models.PositiveIntegerField(help_text="WebSocket streams open at once.")
    ai_calls_per_day = models.PositiveIntegerField()

    class Meta:
        ordering = ("rank", "name")
        constraints = (
            models.CheckConstraint(name="tier_allows_requests", condition=Q(requests_per_minute__gte=1)),
        )

    def __str__(self) -> str:
        return self.name.title()


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
    is_demo = models.BooleanField(default=False, editable=False)
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


class ApiKeyQuerySet(models.QuerySet["ApiKey"]):
    def usable(self, at: datetime) -> ApiKeyQuerySet:
        return self.filter(Q(expires_at=None) | Q(expires_at__gt=at), revoked_at=None)

    def ended(self, at: datetime) -> ApiKeyQuerySet:
        return self.filter(Q(expires_at__lte=at) | Q(revoked_at__isnull=False))

    def of_active_users(self) -> ApiKeyQuerySet:
        return self.filter(account__user__is_active=True)


class ApiKey(models.Model):
    """Opens the API for an account. Only a keyed hash of the secret is stored."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="keys")
    name = models.CharField(max_length=60)
    prefix = models.CharField(max_length=16, unique=True, editable=False)
    digest = models.CharField(max_length=64, unique=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(null=True, blank=True, editable=False)
    expires_at = models.DateTimeField(null=True, blank=True, editable=False)
    revoked_at = models.DateTimeField(null=True, blank=True, editable=False)

    objects = ApiKeyQuerySet.as_manager()

    class Meta:
        verbose_name = "API key"
        ordering = ("-created_at", "-pk")
        constraints = (
            models.CheckConstraint(
                name="api_key_digest_is_sha256", condition=Q(digest__regex=r"^[0-9a-f]{64}$")
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def state(self, at: datetime) -> str:
        if self.revoked_at:
            return "revoked"
        if self.expires_at is None:
            return "active"
        return "rolled" if self.expires_at > at else "expired"


class AiUsage(models.Model):
    """AI calls that an account made on one UTC day."""

    account = models.ForeignKey(Account, on_delete=models.CASCADE, related_name="ai_usage")
    day = models.DateField()
    used = models.PositiveIntegerField(default=0)

    class Meta:
        verbose_name_plural = "AI usage"
        constraints = (models.UniqueConstraint(fields=("account", "day"), name="ai_usage_one_row_a_day"),)

    def __str__(self) -> str:
        return f"{self.used} on {self.day}"

    @classmethod
    def used_on(cls, account_id: int, day: date) -> int:
        return cls.objects.filter(account_id=account_id, day=day).values_list("used", flat=True).first() or 0

    @classmethod
    def spend(cls, account_id: int, day: date, limit: int) -> bool:
        """Count one call if the day's allowance has room; the row count decides, so races cannot."""
        cls.objects.get_or_create(account_id=account_id, day=day)
        free = cls.objects.filter(account_id=account_id, day=day, used__lt=limit)
        return free.update(used=F("used") + 1) == 1
