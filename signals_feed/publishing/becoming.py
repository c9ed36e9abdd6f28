"""The settings panel's page for those who do not publish yet: asking staff, and what became of it."""

from django import forms
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.views.decorators.cache import never_cache

from accounts.models import LONGEST_REASON, Account
from accounts.one_line import OneLineField
from accounts.panel import PersonRequest, address_for_answers, post_only
from signals_feed.ledger.names import looks_like_another
from signals_feed.models import Signal
from signals_feed.publishers.requests import (
    PublisherRequest,
    PublisherRequestRefused,
    ask_to_publish,
    withdraw_request,
    withdrawn_at,
)

from .active import active_signals

PAGE = "publish_signals"
SHOWN = 10


class AskToPublishForm(forms.Form):
    why = OneLineField(
        LONGEST_REASON,
        label="What you would publish",
        help_text="A sentence on the markets and the method.",
        error_messages={"required": "Describe in a sentence what you would publish."},
    )


def becoming_page(
    request: PersonRequest, form: AskToPublishForm | None = None, *, status: int = 200
) -> HttpResponse:
    account = Account.objects.for_user(request.user)
    asked = list(PublisherRequest.objects.filter(account=account)[:SHOWN])
    waiting = next((each for each in asked if each.state == each.State.OPEN), None)
    context = {
        "withdrawn_at": withdrawn_at(account),
        "looks_like_another": looks_like_another(request.user),
        "has_published": Signal.objects.filter(user=request.user).exists(),
        "active": active_signals(request.user),
        "waiting": waiting,
        "decided": [each for each in asked if each is not waiting],
        "form": form or AskToPublishForm(),
        "answers_to": address_for_answers(request.user),
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
        messages.success(request, "Your request has been sent to the staff. This page shows their answer.")
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
