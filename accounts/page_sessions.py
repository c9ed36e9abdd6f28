"""Browser sessions whose pages use the API: what their page tokens stand for."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import HASH_SESSION_KEY, SESSION_KEY
from django.contrib.sessions.models import Session
from django.db import models
from django.db.models.signals import post_delete
from django.dispatch import receiver
from django.utils import timezone
from django.utils.crypto import constant_time_compare

from .outbox import ControlEvent


class PageSession(models.Model):
    """It goes with the browser's session, and its tokens open nothing from then on."""

    session_key = models.CharField(max_length=40, unique=True, editable=False)
    account = models.ForeignKey("accounts.Account", on_delete=models.CASCADE, related_name="page_sessions")
    created_at = models.DateTimeField(default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        app_label = "accounts"

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


@receiver(post_delete, sender=Session)
def end(instance: Session, **_: Any) -> None:
    """Logged out, ended from elsewhere, or renamed because somebody logged in or changed the password."""
    for page_session in PageSession.objects.filter(session_key=instance.session_key):
        page_session.delete()
        ControlEvent.objects.publish("session.ended", account=page_session.account_id)
