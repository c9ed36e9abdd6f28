"""What changes somebody's second factors, before allauth's own addresses of the same: each change is an event
that is kept and a mail that is sent, so that neither may be had without end."""

from __future__ import annotations

from collections.abc import Callable

from allauth.decorators import rate_limit
from allauth.mfa.recovery_codes.views import generate_recovery_codes
from allauth.mfa.totp.views import activate_totp, deactivate_totp
from allauth.mfa.webauthn.views import add_webauthn, remove_webauthn
from django.contrib.auth.decorators import login_required
from django.http import HttpResponseBase
from django.urls import path


def limited(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Counted for whom the factors are of: who is not logged in has none."""
    counted: Callable[..., HttpResponseBase] = rate_limit(action="change_factors")(view)
    return login_required(counted)


urlpatterns = [
    path("totp/activate/", limited(activate_totp), name="mfa_activate_totp"),
    path("totp/deactivate/", limited(deactivate_totp), name="mfa_deactivate_totp"),
    path("recovery-codes/generate/", limited(generate_recovery_codes), name="mfa_generate_recovery_codes"),
    path("webauthn/add/", limited(add_webauthn), name="mfa_add_webauthn"),
    path("webauthn/keys/<int:pk>/remove/", limited(remove_webauthn), name="mfa_remove_webauthn"),
]
