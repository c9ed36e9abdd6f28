from allauth.account.internal.flows.email_verification import get_address_for_login
from allauth.account.stages import EmailVerificationStage
from allauth.account.utils import has_verified_email
from django.http import HttpResponseBase


class ConfirmAddress(EmailVerificationStage):  # type: ignore[misc]
    """Superusers are not asked to confirm an address. They come from the command line, whose user may do
    anything, or from another superuser; and without any mail they would be locked out for good."""

    def handle(self) -> tuple[HttpResponseBase | None, bool]:
        user = self.login.user
        if user is None or not user.is_superuser:
            answer: tuple[HttpResponseBase | None, bool] = super().handle()
            return answer
        # Otherwise it would stand in the way of a second factor.
        if not has_verified_email(user) and (address := get_address_for_login(self.login)):
            address.set_verified()
        return None, True
