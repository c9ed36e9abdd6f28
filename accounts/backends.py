"""Logging in by name or e-mail, with the demo login kept on loopback."""

from __future__ import annotations

from typing import Any

from allauth.account.auth_backends import AuthenticationBackend
from django.http import HttpRequest

from .loopback import is_loopback
from .models import Account


class LoginBackend(AuthenticationBackend):  # type: ignore[misc]
    def authenticate(self, request: HttpRequest | None, **credentials: Any) -> Any:
        user = super().authenticate(request, **credentials)
        if user is None or request is None or is_loopback(request):
            return user
        return None if Account.objects.filter(user=user, is_demo=True).exists() else user
