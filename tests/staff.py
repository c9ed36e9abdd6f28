"""Staff in a browser, with the second factor that the back office asks for."""

from __future__ import annotations

import time

from allauth.account.internal.flows import login
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.internal.auth import TOTP, generate_totp_secret
from django.test import Client

from accounts.models import User


def staff_client(user: User) -> Client:
    """Logged in with a password and a code; whoever has no factor is given one."""
    if not Authenticator.objects.filter(user=user).exists():
        TOTP.activate(user, generate_totp_secret())
    client = Client()
    client.force_login(user)
    session = client.session
    shown = {"method": "mfa", "type": "totp", "at": time.time(), "reauthenticated": True}
    session[login.AUTHENTICATION_METHODS_SESSION_KEY] = [shown]
    session[login._AUTHENTICATION_METHODS_USER_SESSION_KEY] = str(user.pk)
    session.save()
    return client
