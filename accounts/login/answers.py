"""The mails that say what staff decided on a request, and what else they did to an account."""

from allauth.account.adapter import get_adapter
from allauth.account.models import EmailAddress
from allauth.core.context import request_context
from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from accounts.models import User


def address_for_answers(user: User) -> str:
    """Empty if no mail would come: the service sends none, or no address of theirs is confirmed."""
    if not settings.MAILS_ARE_SENT:
        return ""
    confirmed = EmailAddress.objects.filter(user=user, primary=True, verified=True)
    return confirmed.values_list("email", flat=True).first() or ""


def send_answer(request: HttpRequest, user: User, mail: str, *, page: str, **about: object) -> None:
    address = address_for_answers(user)
    if not address:
        return
    context = {**about, "page": request.build_absolute_uri(reverse(page))}
    # The mail names the browser that the request came from, which allauth asks for in a context.
    with request_context(request):
        get_adapter(request).send_notification_mail(mail, user, context, email=address)


def tell_of_staff(request: HttpRequest, user: User, what: str) -> None:
    """`what` is one or more sentences."""
    send_answer(request, user, "settings/email/by_staff", page="events", what=what)
