"""Who would like another tier: accepted, or declined with a reason."""

from __future__ import annotations

from functools import partial
from typing import Any, ClassVar, Protocol

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.back_office.pages import StaffAdmin, actor, asked, button, label
from accounts.models import TierRequest
from accounts.tier_changes import Refused, accept, decline
from accounts.tier_requests import LONGEST


class Act(Protocol):
    def __call__(self, request: TierRequest, *, by: str) -> None: ...


class DeclineForm(forms.Form):
    answer = forms.CharField(
        label="Reason",
        max_length=LONGEST,
        help_text="The customer reads it.",
        widget=UnfoldAdminTextInputWidget,
    )


@admin.register(TierRequest)
class TierRequestAdmin(StaffAdmin[TierRequest]):
    owner = "account__user"
    decides_about_owner = True
    list_display = ("account", "current", "wanted", "why", "state_now", "asked_at", "decided_by")
    list_select_related = ("account__user", "account__tier", "wanted")
    list_filter = ("state", "wanted")
    sortable_by = ()
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

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: TierRequest | None = None) -> bool:
        return False

    def get_actions_detail(self, request: HttpRequest, object_id: str) -> list[Any]:
        found = self.get_object(request, object_id)
        offered: list[Any] = super().get_actions_detail(request, object_id)  # type: ignore[misc]
        return offered if found and found.state == TierRequest.State.OPEN else []

    @button("Accept", permission="change", icon="check")
    def accept(self, request: HttpRequest, found: TierRequest) -> HttpResponse:
        if asked(request):
            return self.decide(request, found, accept, f"Accepted: {found.wanted}.")
        text = (
            f"From {found.account.tier} to {found.wanted}, within two seconds everywhere. Why: “{found.why}”"
        )
        return self.ask(request, forms.Form(), title=f"Accept {found}", text=text, submit="Accept")

    @button("Decline", permission="change", icon="close", danger=True)
    def decline(self, request: HttpRequest, found: TierRequest) -> HttpResponse:
        form = DeclineForm(request.POST if asked(request) else None)
        if form.is_valid():
            return self.decide(request, found, partial(decline, **form.cleaned_data), "Declined.")
        text = f"Asked for because: “{found.why}”"
        return self.ask(request, form, title=f"Decline {found}", text=text, submit="Decline", danger=True)

    def decide(self, request: HttpRequest, found: TierRequest, act: Act, done: str) -> HttpResponse:
        try:
            with transaction.atomic():
                act(found, by=actor(request))
                self.log_change(request, found, done)
                if found.state == TierRequest.State.ACCEPTED:
                    self.log_change(request, found.account, f"Tier {found.wanted}, as asked for.")  # type: ignore[arg-type]
            self.message_user(request, done, messages.SUCCESS)
        except Refused as refusal:
            self.message_user(request, str(refusal), messages.ERROR)
        return redirect("admin:accounts_tierrequest_change", found.pk)
