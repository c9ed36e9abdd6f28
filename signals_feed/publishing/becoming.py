"""The settings panel's page for those who do not publish yet: asking staff, and what became of it."""

from allauth.account.adapter import get_adapter
from allauth.account.models import EmailAddress
from allauth.core.context import request_context
from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache

from accounts.models import Account
from accounts.panel import PersonRequest, post_only, refuse_unprintable
from signals_feed.publishers.requests import (
    PublisherRequest,
    PublisherRequestRefused,
    ask_to_publish,
    withdraw_request,
)

PAGE = "publish_signals"
SHOWN = 10


class AskToPublishForm(forms.Form):
    why = forms.CharField(
        label="What you would publish",
        max_length=PublisherRequest._meta.get_field("why").max_length,
        validators=[refuse_unprintable],
        help_text="A sentence on the markets and the method.",
        error_messages={"required": "Describe in a sentence what you would publish."},
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )


def becoming_page(
    request: PersonRequest, form: AskToPublishForm | None = None, *, status: int = 200
) -> HttpResponse:
    account = Account.objects.for_user(request.user)
    asked = list(PublisherRequest.objects.filter(account=account)[:SHOWN])
    waiting = next((each for each in asked if each.state == each.State.OPEN), None)
    context = {
        "waiting": waiting,
        "decided": [each for each in asked if each is not waiting],
        "form": form or AskToPublishForm(),
    }
    return render(request, "signals/not_a_publisher.html", context, status=status)


@post_only
@login_required
@never_cache
def ask(request: PersonRequest) -> HttpResponse:
    form = AskToPublishForm(request.POST)
    if not form.is_valid():
        return becoming_page(request, form, status=400)
    try:
        ask_to_publish(Account.objects.for_user(request.user), **form.cleaned_data, by=request.user)
    except PublisherRequestRefused as refusal:
        messages.error(request, str(refusal))
    else:
        messages.success(request, "Your request has been sent to the staff. They answer here and by email.")
    return redirect(PAGE)


@post_only
@login_required
@never_cache
def withdraw(request: PersonRequest, pk: int) -> HttpResponse:
    own = PublisherRequest.objects.filter(account=Account.objects.for_user(request.user))
    try:
        withdraw_request(get_object_or_404(own, pk=pk), by=request.user)
        messages.success(request, "Your request has been withdrawn.")
    except PublisherRequestRefused:
        messages.info(request, "It has already been decided; see below.")
    return redirect(PAGE)


def send_decision(request: HttpRequest, decided: PublisherRequest) -> None:
    """By mail to whoever asked, if they have an address."""
    user = decided.account.user
    address = EmailAddress.objects.get_primary_email(user) or user.email
    if not address:
        return
    page = request.build_absolute_uri(reverse(PAGE))
    context = {"decided": decided, "page": page}
    mail = f"signals/email/publishing_{decided.state}"
    # The mail names the browser that the request came from, which allauth asks for in a context.
    with request_context(request):
        get_adapter(request).send_notification_mail(mail, user, context, email=address)
