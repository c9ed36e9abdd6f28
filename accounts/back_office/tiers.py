"""Tiers, and who would like another. A change reaches open sockets through control events."""

from __future__ import annotations

from django import forms
from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse

from accounts.limits.tiers import TierRequestRefused, accept_request, decline_request, save_tier
from accounts.models import TIER_LIMITS, Tier, TierRequest

from .request_pages import RequestAdmin
from .staff_pages import StaffAdmin, button


@admin.register(Tier)
class TierAdmin(StaffAdmin[Tier]):
    list_display = ("name", "price", *TIER_LIMITS, "rank")
    fields = ("name", "price", *TIER_LIMITS, "rank")
    search_fields = ("name",)
    sortable_by = None
    # Accounts, commands and rate-limit headers know a tier by its name.
    set_once = ("name",)
    never = ("delete",)

    def save_model(self, request: HttpRequest, obj: Tier, form: ModelForm[Tier], change: bool) -> None:
        save_tier(obj, by=request.user.get_username())


@admin.register(TierRequest)
class TierRequestAdmin(RequestAdmin[TierRequest]):
    decline_request = staticmethod(decline_request)
    refusal = TierRequestRefused
    mail, page = "settings/email/tier", "tier"
    list_display = ("account", "current", "wanted", "why", "state_now", "asked_at", "decided_by")
    list_select_related = ("account__user", "account__tier", "wanted")
    list_filter = ("state", "wanted")
    fields = readonly_fields = (
        *("account", "current", "wanted", "why", "asked_at"),
        *("state_now", "decided_at", "decided_by", "answer"),
    )

    @admin.display(description="Tier now")
    def current(self, request: TierRequest) -> str:
        return str(request.account.tier)

    @button("Accept", permission="change", icon="check")
    def accept(self, request: HttpRequest, found: TierRequest) -> HttpResponse:
        if (closed := self.already(request, found)) is not None:
            return closed
        if "answered" in request.POST:
            return self.decide(request, found, accept_request, f"Accepted: {found.wanted}.")
        text = (
            f"The tier changes from {found.account.tier} to {found.wanted} within two seconds, on open"
            f" streams too. The reason given: “{found.why}”"
        )
        return self.ask(
            request,
            forms.Form(),
            title=f"Accept the request of {found.account} for {found.wanted}",
            text=text,
            submit="Accept",
        )

    def decider(self, request: HttpRequest) -> str:
        return request.user.get_username()

    def log_decision(self, request: HttpRequest, found: TierRequest, done: str) -> None:
        super().log_decision(request, found, done)
        if found.state == TierRequest.State.ACCEPTED:
            self.log_change(request, found.account, f"Tier {found.wanted}, as asked for.")  # type: ignore[arg-type]
