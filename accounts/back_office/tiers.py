"""Tiers, and who would like another. A change reaches open sockets through control events."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.limits.tiers import TierRequestRefused, accept_request, decline_request, save_tier
from accounts.models import LONGEST_REASON, TIER_LIMITS, Tier, TierRequest

from .staff_pages import StaffAdmin, button, label


@admin.register(Tier)
class TierAdmin(StaffAdmin[Tier]):
    list_display = ("name", "price", *TIER_LIMITS, "rank")
    search_fields = ("name",)
    sortable_by = None
    # Accounts, commands and rate-limit headers know a tier by its name.
    set_once = ("name",)
    never = ("delete",)

    def save_model(self, request: HttpRequest, obj: Tier, form: ModelForm[Tier], change: bool) -> None:
        save_tier(obj, by=request.user.get_username())


class DeclineForm(forms.Form):
    answer = forms.CharField(
        label="Reason",
        max_length=LONGEST_REASON,
        help_text="The customer reads it.",
        widget=UnfoldAdminTextInputWidget,
    )


@admin.register(TierRequest)
class TierRequestAdmin(StaffAdmin[TierRequest]):
    owner = "account__user"
    decides_about_owner = True
    never = ("add", "delete")
    list_display = ("account", "current", "wanted", "why", "state_now", "asked_at", "decided_by")
    list_select_related = ("account__user", "account__tier", "wanted")
    list_filter = ("state", "wanted")
    search_fields = ("account__user__username__startswith",)
    search_help_text = "The beginning of a username."
    fields = readonly_fields = (
        *("account", "current", "wanted", "why", "asked_at"),
        *("state_now", "decided_at", "decided_by", "answer"),
    )
    actions_detail: ClassVar[tuple[str, ...]] = ("accept", "decline")

    @admin.display(description="Tier now")
    def current(self, request: TierRequest) -> str:
        return str(request.account.tier)

    @label("State", waiting="warning", accepted="success", declined="danger")
    def state_now(self, request: TierRequest) -> str:
        return request.get_state_display()

    def get_actions_detail(self, request: HttpRequest, object_id: str) -> list[Any]:
        found = self.get_object(request, object_id)
        offered: list[Any] = super().get_actions_detail(request, object_id)  # type: ignore[misc]
        return offered if found and found.state == TierRequest.State.OPEN else []

    @button("Accept", permission="change", icon="check")
    def accept(self, request: HttpRequest, found: TierRequest) -> HttpResponse:
        if "answered" in request.POST:
            return self.decide(request, found, accept_request, f"Accepted: {found.wanted}.")
        text = (
            f"From {found.account.tier} to {found.wanted}, within two seconds everywhere. Why: “{found.why}”"
        )
        return self.ask(request, forms.Form(), title=f"Accept {found}", text=text, submit="Accept")

    @button("Decline", permission="change", icon="close", danger=True)
    def decline(self, request: HttpRequest, found: TierRequest) -> HttpResponse:
        form = DeclineForm(request.POST if "answered" in request.POST else None)
        if form.is_valid():
            return self.decide(request, found, partial(decline_request, **form.cleaned_data), "Declined.")
        text = f"Asked for because: “{found.why}”"
        return self.ask(request, form, title=f"Decline {found}", text=text, submit="Decline", danger=True)

    def decide(
        self, request: HttpRequest, found: TierRequest, act: Callable[..., None], done: str
    ) -> HttpResponse:
        try:
            with transaction.atomic():
                act(found, by=request.user.get_username())
                self.log_change(request, found, done)
                if found.state == TierRequest.State.ACCEPTED:
                    self.log_change(request, found.account, f"Tier {found.wanted}, as asked for.")  # type: ignore[arg-type]
            self.message_user(request, done, messages.SUCCESS)
        except TierRequestRefused as refusal:
            self.message_user(request, str(refusal), messages.ERROR)
        return redirect("admin:accounts_tierrequest_change", found.pk)
