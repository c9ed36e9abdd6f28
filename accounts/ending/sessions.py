"""The sessions of somebody who was locked out: unlocked again, they log in anew, and so does a thief."""

from allauth.usersessions.models import UserSession
from django.contrib.sessions.models import Session

from accounts.models import PageSession, User


def end_sessions(user: User) -> None:
    """What their pages have open ends with them."""
    logins, pages = UserSession.objects.filter(user=user), PageSession.objects.filter(account__user=user)
    keys = {row.session_key for rows in (logins, pages) for row in rows}
    Session.objects.filter(session_key__in=keys).delete()
    logins.delete()
