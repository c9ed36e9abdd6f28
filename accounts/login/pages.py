"""Pages that replace those of allauth at the same addresses. Pages that send mails say so where none can be
sent (EMAIL_URL=dummymail://), instead of promising one; changes of second factors are limited."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account import views
from allauth.decorators import rate_limit
from allauth.mfa.base.forms import AuthenticateForm, ReauthenticateForm
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.views import generate_recovery_codes
from allauth.mfa.totp.forms import ActivateTOTPForm
from allauth.mfa.totp.views import activate_totp, deactivate_totp
from allauth.mfa.webauthn.forms import AddWebAuthnForm, EditWebAuthnForm
from allauth.mfa.webauthn.views import add_webauthn, remove_webauthn
from django.conf import settings
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import path, re_path

from accounts.form_fields import OneLineField
from accounts.models import User


def needs_mail(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **options: Any) -> HttpResponseBase:
        if settings.MAILS_ARE_SENT:
            return view(request, *args, **options)
        return render(request, "account/no_mail.html", status=403)

    return answer


class ConfirmAddressPage(views.ConfirmEmailView):  # type: ignore[misc]
    """Any page could embed such a link as a picture, so opening it changes nothing."""

    def logout_other_user(self, confirmation: Any) -> None:
        if self.request.method == "POST":
            super().logout_other_user(confirmation)


# Pages on which second factors change: each change is kept as an event and sent by mail, so both are limited.
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
    path("signup/", needs_mail(views.signup), name="account_signup"),
    path("email/", needs_mail(views.email), name="account_email"),
    path("confirm-email/", needs_mail(views.email_verification_sent), name="account_email_verification_sent"),
    re_path(r"^confirm-email/(?P<key>[-:\w]+)/$", ConfirmAddressPage.as_view(), name="account_confirm_email"),
    path("password/reset/", needs_mail(views.password_reset), name="account_reset_password"),
    path("password/reset/done/", needs_mail(views.password_reset_done), name="account_reset_password_done"),
    path("2fa/totp/activate/", limited(activate_totp), name="mfa_activate_totp"),
    path("2fa/totp/deactivate/", limited(deactivate_totp), name="mfa_deactivate_totp"),
    path(
        "2fa/recovery-codes/generate/", limited(generate_recovery_codes), name="mfa_generate_recovery_codes"
    ),
    path("2fa/webauthn/add/", limited(add_webauthn), name="mfa_add_webauthn"),
    path("2fa/webauthn/keys/<int:pk>/remove/", limited(remove_webauthn), name="mfa_remove_webauthn"),
]
