"""The pages on which second factors change. They stand before allauth's own at the same addresses, because
each change is kept as an event and sent by mail, and neither may be had without end."""

from collections.abc import Callable
from typing import Any

from allauth.decorators import rate_limit
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.views import generate_recovery_codes
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.totp.views import activate_totp, deactivate_totp
from allauth.mfa.webauthn.forms import AddWebAuthnForm, EditWebAuthnForm
from allauth.mfa.webauthn.views import add_webauthn, remove_webauthn
from django.contrib.auth.decorators import login_required
from django.http import HttpResponseBase
from django.urls import path

from accounts.form_fields import OneLineField
from accounts.models import User


class AddPasskeyForm(AddWebAuthnForm):  # type: ignore[misc]
    name = OneLineField(help_text="A name by which you recognise it, such as “phone” or “blue key”.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        alone = self.fields["passwordless"]
        alone.label, alone.initial = "Log in with it alone, without name and password", True
        alone.help_text = "Your device then asks for a fingerprint, your face or a PIN."


class RenamePasskeyForm(EditWebAuthnForm):  # type: ignore[misc]
    name = OneLineField()


class CodeWords:
    """A second factor may be a passkey without an app."""

    user: User

    @property
    def words(self) -> str:
        if Authenticator.objects.filter(user=self.user, type=Authenticator.Type.TOTP).exists():
            return "Enter the code that your authenticator app shows, or a recovery code."
        return "Use your passkey, or enter a recovery code."


class CodeForm(CodeWords, AuthenticateForm):  # type: ignore[misc]
    pass


class ConfirmByCodeForm(CodeWords, ReauthenticateForm):  # type: ignore[misc]
    pass


class ActivateAppForm(ActivateTOTPForm):  # type: ignore[misc]
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["code"].label = "Code"


def limited(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Changes are counted for the owner of the factors, so a login comes first."""
    counted: Callable[..., HttpResponseBase] = rate_limit(action="change_factors")(view)
    return login_required(counted)


urlpatterns = [
    path("totp/activate/", limited(activate_totp), name="mfa_activate_totp"),
    path("totp/deactivate/", limited(deactivate_totp), name="mfa_deactivate_totp"),
    path("recovery-codes/generate/", limited(generate_recovery_codes), name="mfa_generate_recovery_codes"),
    path("webauthn/add/", limited(add_webauthn), name="mfa_add_webauthn"),
    path("webauthn/keys/<int:pk>/remove/", limited(remove_webauthn), name="mfa_remove_webauthn"),
]
