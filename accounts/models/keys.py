"""What opens the API for an account: keys, and the browser sessions whose pages use it."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from accounts.key_text import MARK_BYTES
from core.events.kinds import EventKind
from core.events.outbox import ControlEvent

from .accounts import Account


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
    """Logged out, ended from elsewhere, or renamed because somebody logged in or changed the password."""
    for page_session in PageSession.objects.filter(session_key=instance.session_key):
        page_session.delete()
        ControlEvent.objects.publish(EventKind.SESSION_ENDED, account=page_session.account_id)
