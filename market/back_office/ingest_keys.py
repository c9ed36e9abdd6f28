"""Ingest keys in the back office."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from accounts.back_office import KeyAdmin
from market.models import IngestKey
from market.push.keys import allow_symbols, check_symbols, issue_ingest_key, revoke_ingest_key

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[IngestKey]
else:
    ModelForm = forms.ModelForm
NEVER_EDITED = ("name", "prefix", "state", "created_at", "last_used_at", "revoked_at")


class SymbolsForm(ModelForm):
    class Meta:
        model = IngestKey
        fields = ("symbols",)
        widgets = {"symbols": UnfoldAdminTextareaWidget(attrs={"rows": 3})}

    def clean_symbols(self) -> str:
        return check_symbols(self.cleaned_data["symbols"])


class IssueIngestKeyForm(SymbolsForm):
    class Meta(SymbolsForm.Meta):
        fields = ("name", "symbols")  # type: ignore[assignment]
        widgets = {**SymbolsForm.Meta.widgets, "name": UnfoldAdminTextInputWidget}


class StateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [("active", "Active"), ("revoked", "Revoked")]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        chosen = self.value()
        return queryset if chosen is None else queryset.filter(revoked_at__isnull=chosen == "active")


@admin.register(IngestKey)
class IngestKeyAdmin(KeyAdmin[IngestKey]):
    form = SymbolsForm
    issue_form = IssueIngestKeyForm  # type: ignore[assignment]
    issue_one = staticmethod(issue_ingest_key)
    revoke_one = staticmethod(revoke_ingest_key)
    list_display = ("prefix", "name", "may_send", "state", "last_used_at", "created_at")
    list_filter = (StateFilter,)
    search_fields = ("prefix__startswith", "name__startswith")
    search_help_text = "Prefix or name starts with…"
    fields = (*NEVER_EDITED[:2], "symbols", *NEVER_EDITED[2:])
    readonly_fields = NEVER_EDITED

    @admin.display(description="May send")
    def may_send(self, key: IngestKey) -> str:
        return key.symbols or "all symbols"

    def save_model(self, request: HttpRequest, obj: IngestKey, form: Any, change: bool) -> None:
        allow_symbols(obj, obj.symbols, by=request.user.get_username())
