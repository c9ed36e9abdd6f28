"""Tiers, and who is on which. A change reaches open sockets through the services' control events."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.forms import ModelForm
from django.http import HttpRequest
from django.urls import reverse
from django.utils import timezone
from django.utils.html import format_html

from accounts.back_office.pages import StaffAdmin, actor
from accounts.models import Account, Tier
from accounts.near_limits import near_limits
from accounts.services import change_tier, save_tier


@admin.register(Tier)
class TierAdmin(StaffAdmin[Tier]):
    list_display = ("name", "requests_per_minute", "streams", "ai_calls_per_day", "rank")
    search_fields = ("name",)

    def get_readonly_fields(self, request: HttpRequest, obj: Tier | None = None) -> tuple[str, ...]:
        # Accounts, commands and rate-limit headers know a tier by its name.
        return ("name",) if obj else ()

    def has_delete_permission(self, request: HttpRequest, obj: Tier | None = None) -> bool:
        return False

    def save_model(self, request: HttpRequest, obj: Tier, form: ModelForm[Tier], change: bool) -> None:
        save_tier(obj, by=actor(request))


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
    list_display = ("user", "tier", "is_demo", "created_at")
    list_select_related = ("user", "tier")
    list_filter = ("tier", "is_demo", NearLimitsFilter)
    ordering = ("-pk",)
    sortable_by = ()
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

    def get_readonly_fields(self, request: HttpRequest, obj: Account | None = None) -> tuple[str, ...]:
        return ("user", *self.readonly_fields) if obj else self.readonly_fields

    def has_delete_permission(self, request: HttpRequest, obj: Account | None = None) -> bool:
        """Deactivate the user instead: what an account did stays on record."""
        return False

    def save_model(self, request: HttpRequest, obj: Account, form: ModelForm[Account], change: bool) -> None:
        if not change:
            obj.save()
        elif "tier" in form.changed_data:
            change_tier(obj, obj.tier, by=actor(request))
