"""The accounts of customers: their tier, whether they may publish, and what they use now."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django import forms
from django.contrib import admin
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html
from unfold.widgets import UnfoldBooleanSwitchWidget

from accounts.limits.tiers import change_tier
from accounts.models import Account
from accounts.panel.streams import rows_of
from accounts.panel.usage import Chart, bars, days_of, minutes_of
from accounts.rights import publishing_right
from accounts.usage.near_limits import near_limits

from .owners import OwnerTold
from .staff_pages import StaffAdmin


class NearLimitsFilter(admin.SimpleListFilter):
    title = "limits"
    parameter_name = "limits"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("near", "Near or at their limits")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Account]) -> QuerySet[Account]:
        return queryset.filter(pk__in=near_limits(timezone.now())) if self.value() == "near" else queryset


class VisitorFilter(admin.SimpleListFilter):
    """The demo makes an account for every browser that looks at it. They would bury those of customers."""

    title = "visitors"
    parameter_name = "visitors"
    lookup = "visitor_from"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("only", "Visitors of the demo"), ("with", "Both")]

    def choices(self, changelist: Any) -> Iterator[Any]:
        first, *others = super().choices(changelist)
        yield {**first, "display": "Customers"}
        yield from others

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        if self.value() == "with":
            return queryset
        visitors = {f"{self.lookup}__gt": ""}
        return queryset.filter(**visitors) if self.value() == "only" else queryset.exclude(**visitors)


class VisitingUserFilter(VisitorFilter):
    lookup = "account__visitor_from"


class AccountForm(forms.ModelForm):  # type: ignore[type-arg]
    may_publish = forms.BooleanField(
        label="May publish signals",
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Under their own name. Each signal is public and final.",
    )

    class Meta:
        model = Account
        fields = ("user", "tier")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # Whoever may only look at the page has no such field.
        if self.instance.pk and "may_publish" in self.fields:
            self.initial["may_publish"] = publishing_right.is_held_by(self.instance.user)


@admin.register(Account)
class AccountAdmin(OwnerTold, StaffAdmin[Account]):
    owner = "user"
    decides_about_owner = True
    never = ("delete",)
    """Deactivate the user instead: what an account did stays on record."""
    set_once = ("user",)
    form = AccountForm
    change_form_after_template = "admin/accounts/usage.html"
    list_display = ("user", "tier", "is_active", "is_demo", "created_at")
    list_filter = (VisitorFilter, "tier", "user__is_active", "is_demo", NearLimitsFilter)
    ordering = ("-pk",)
    search_fields = ("user__username__startswith", "user__email__startswith")
    search_help_text = "Username or email starts with…"
    autocomplete_fields = ("user",)
    fields = ("user", "tier", "is_active", "may_publish", "keys", "is_demo", "created_at")
    readonly_fields = ("is_active", "keys", "is_demo", "created_at")

    @admin.display(boolean=True, description="active", ordering="user__is_active")
    def is_active(self, account: Account) -> bool:
        """Whoever is locked asks support first. The page of the user locks and unlocks."""
        return account.pk is None or account.user.is_active

    @admin.display(description="API keys")
    def keys(self, account: Account) -> str:
        if account.pk is None:
            return "-"
        address = f"{reverse('admin:accounts_apikey_changelist')}?account__id__exact={account.pk}"
        return format_html('<a href="{}" class="text-primary-600">Keys of this account</a>', address)

    @admin.display(boolean=True, description="May publish signals")
    def may_publish(self, account: Account) -> bool:
        """For those who may not change it."""
        return publishing_right.is_held_by(account.user)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Account]:
        # The name of an account is that of its user, in autocompletion too.
        return super().get_queryset(request).select_related("user", "tier")

    def save_model(self, request: HttpRequest, obj: Account, form: ModelForm[Account], change: bool) -> None:
        by, is_switched = request.user.get_username(), "may_publish" in form.changed_data
        # All rows before the first event: whoever writes events makes others wait.
        if is_switched:
            publishing_right.set_for(obj.user, is_held=form.cleaned_data["may_publish"])
        if not change:
            obj.save()
        elif "tier" in form.changed_data:
            change_tier(obj, obj.tier, by=by)
        if is_switched:
            publishing_right.announce(obj.user, is_held=form.cleaned_data["may_publish"], by=by)

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **options: Any) -> Any:
        account = context.get("original")
        used = used_by(account, timezone.now()) if account else {}
        return super().render_change_form(request, {**context, **used}, *args, **options)


def used_by(account: Account, now: datetime) -> dict[str, Any]:
    """What the page shows of its use: today beside what its tier allows, 30 days, and what is open."""
    days = days_of(account, now)
    today, tier = days[-1], account.tier
    streams = rows_of(account)
    busiest = max(minute.requests for minute in minutes_of(account, now))
    return {
        "used_today": (
            ("Requests today", today.counts.requests, None),
            ("Requests in the busiest minute today", busiest, tier.requests_per_minute),
            ("Streams opened today", today.counts.streams, None),
            ("Open streams (API keys)", sum(not each.is_of_page for each in streams), tier.streams),
            ("AI calls today", today.ai_calls, tier.ai_calls_per_day),
        ),
        "charts": [
            Chart("Requests in 30 days", "day", bars([day.counts.requests for day in days])),
            Chart("Streams opened in 30 days", "day", bars([day.counts.streams for day in days])),
            Chart("AI calls in 30 days", "day", bars([day.ai_calls for day in days])),
        ],
        "open_streams": streams,
    }
