"""The settings panel's page of tiers: what each allows, and asking staff for another."""

from typing import Any

from django import forms
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect, render

from accounts.limits.tiers import TierRequestRefused, ask_for_tier, withdraw_request
from accounts.login.answers import address_for_answers
from accounts.models import LONGEST_REASON, TIER_LIMITS, Account, Tier
from accounts.one_line import OneLineField

from .requests import PersonRequest, settings_action, settings_form

SHOWN = 10


class TierRequestForm(forms.Form):
    wanted = forms.ModelChoiceField(
        Tier.objects.none(), label="Tier", empty_label=None, error_messages={"required": "Choose a tier."}
    )
    why = OneLineField(
        LONGEST_REASON,
        label="Why",
        help_text="One sentence: what you are building, and what your tier lacks for it.",
        error_messages={"required": "Give the reason in one sentence."},
    )

    def __init__(self, current: Tier, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        wanted = self.fields["wanted"]
        assert isinstance(wanted, forms.ModelChoiceField)  # noqa: S101 - declared above
        wanted.queryset = Tier.objects.exclude(pk=current.pk)


@settings_form
def tier(request: PersonRequest) -> HttpResponse:
    account = Account.objects.for_user(request.user)
    if request.method != "POST":
        # A link on the page of prices says which.
        wanted = Tier.objects.filter(name=request.GET.get("wanted", "")).first()
        return show(request, account, TierRequestForm(account.tier, initial={"wanted": wanted}))
    form = TierRequestForm(account.tier, request.POST)
    if not form.is_valid():
        return show(request, account, form, status=400)
    try:
        ask_for_tier(account, **form.cleaned_data, by=request.user.get_username())
    except TierRequestRefused as refusal:
        form.add_error(None, str(refusal))
        return show(request, account, form, status=409)
    messages.success(request, "Your request has been sent to the staff. This page shows their answer.")
    return redirect("tier")


def show(
    request: PersonRequest, account: Account, form: TierRequestForm, *, status: int = 200
) -> HttpResponse:
    asked = list(account.tier_requests.select_related("wanted")[:SHOWN])
    waiting = next((each for each in asked if each.state == each.State.OPEN), None)
    context = {
        "tier": account.tier,
        "tiers": Tier.objects.all(),
        "limits": TIER_LIMITS.values(),
        "waiting": waiting,
        "decided": [each for each in asked if each is not waiting],
        "form": form,
        "answers_to": address_for_answers(request.user),
    }
    return render(request, "settings/tier.html", context, status=status)


@settings_action
def withdraw(request: PersonRequest, pk: int) -> HttpResponse:
    account = Account.objects.for_user(request.user)
    try:
        withdraw_request(get_object_or_404(account.tier_requests, pk=pk), by=request.user.get_username())
        messages.success(request, "Your request has been withdrawn.")
    except TierRequestRefused:
        messages.info(request, "It has already been decided; see below.")
    return redirect("tier")
