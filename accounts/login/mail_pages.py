"""Pages that are of no use without mails. Where none are sent (EMAIL_URL=dummymail://) they say so, instead
of promising a mail. They stand before allauth's own at the same addresses."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account import views
from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.urls import path


def needs_mail(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **options: Any) -> HttpResponseBase:
        if settings.MAILS_ARE_SENT:
            return view(request, *args, **options)
        return render(request, "account/no_mail.html", status=403)

    return answer


urlpatterns = [
    path("signup/", needs_mail(views.signup), name="account_signup"),
    path("email/", needs_mail(views.email), name="account_email"),
    path("confirm-email/", needs_mail(views.email_verification_sent), name="account_email_verification_sent"),
    path("password/reset/", needs_mail(views.password_reset), name="account_reset_password"),
    path("password/reset/done/", needs_mail(views.password_reset_done), name="account_reset_password_done"),
]
