"""Pages that send mails, and the page that a mailed link opens. They stand before allauth's own at the same
addresses: where no mails are sent (EMAIL_URL=dummymail://) they say so, instead of promising one."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account import views
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import path, re_path


def needs_mail(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **options: Any) -> HttpResponseBase:
        if settings.MAILS_ARE_SENT:
            return view(request, *args, **options)
        return render(request, "account/no_mail.html", status=403)

    return answer


class ConfirmAddressPage(views.ConfirmEmailView):  # type: ignore[misc]
    """Any page could have a picture whose address is such a link: to open it changes nothing."""

    def logout_other_user(self, confirmation: Any) -> None:
        if self.request.method == "POST":
            super().logout_other_user(confirmation)


urlpatterns = [
    path("signup/", needs_mail(views.signup), name="account_signup"),
    path("email/", needs_mail(views.email), name="account_email"),
    path("confirm-email/", needs_mail(views.email_verification_sent), name="account_email_verification_sent"),
    re_path(r"^confirm-email/(?P<key>[-:\w]+)/$", ConfirmAddressPage.as_view(), name="account_confirm_email"),
    path("password/reset/", needs_mail(views.password_reset), name="account_reset_password"),
    path("password/reset/done/", needs_mail(views.password_reset_done), name="account_reset_password_done"),
]
