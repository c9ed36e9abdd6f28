"""Tiers, who is on which, and who would like another. A change reaches open sockets through control
events."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

from django import forms
from django.contrib import admin, messages
from django.db import transaction
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from unfold.widgets import UnfoldAdminTextInputWidget

from accounts.limits.tiers import TierRequestRefused, accept_request, change_tier, decline_request, save_tier
from accounts.models import LONGEST_REASON, TIER_LIMITS, Account, Tier, TierRequest
from accounts.usage.near_limits import near_limits

from .staff_pages import StaffAdmin, button, label


@admin.register(Tier)
class TierAdmin(StaffAdmin[Tier]):
    list_display = ("name", *TIER_LIMITS, "rank")
    search_fields = ("name",)
    sortable_by = None
    # Accounts, commands and rate-limit headers know a tier by its name.
    set_once = ("name",)
    never = ("delete",)

    def save_model(self, request: HttpRequest, obj: Tier, form: ModelForm[Tier], change: bool) -> None:
        save_tier(obj, by=request.user.get_username())


class NearLimitsFilter(admin.SimpleListFilter):
    title = "limits"
    parameter_name = "limits"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("near", "Near or at their limits")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Account]) -> QuerySet[Account]:
        return queryset.filter(pk__in=near_limits(timezone.now())) if self.value() == "near" else queryset


@admin.register(Account)
class AccountAdmin(StaffAdmin[Account]):
    owner = "user"
    decides_about_owner = True
    never = ("delete",)
    """Deactivate the user instead: what an account did stays on record."""
    set_once = ("user",)
    list_display = ("user", "tier", "is_demo", "created_at")
    list_filter = ("tier", "is_demo", NearLimitsFilter)
    ordering = ("-pk",)
    search_fields = ("user__username__startswith", "user__email__startswith")
    search_help_text = "The beginning of a username or e-mail address."
    autocomplete_fields = ("user",)
    fields = ("user", "tier", "keys", "is_demo", "created_at")
    readonly_fields = ("keys", "is_demo", "created_at")

    @admin.display(description="API keys")
    def keys(self, account: Account) -> str:
        if account.pk is None:
            return "-"
        address = f"{reverse('admin:accounts_apikey_changelist')}?account__id__exact={account.pk}"
        return format_html('<a href="{}" class="text-primary-600">Keys of this account</a>', address)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Account]:
        # The name of an account is that of its user, in autocompletion too.
        return super().get_queryset(request).select_related("user", "tier")

    def save_model(self, request: HttpRequest, obj: Account, form: ModelForm[Account], change: bool) -> None:
        if not change:
            obj.save()
        elif "tier" in form.changed_data:
            change_tier(obj, obj.tier, by=request.user.get_username())


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
