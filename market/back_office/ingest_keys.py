"""Ingest keys in the back office."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from unfold.widgets import UnfoldAdminTextareaWidget, UnfoldAdminTextInputWidget

from accounts.back_office import NO_OWNER, KeyAdmin
from accounts.models import Account
from accounts.one_line import refuse_unprintable
from accounts.rights import PowerRefused
from market.models import IngestKey
from market.own_prices import account_of
from market.push.keys import (
    allow_symbols,
    check_symbols,
    issue_ingest_key,
    refuse_change,
    revoke_ingest_key,
)

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[IngestKey]
else:
    ModelForm = forms.ModelForm
NEVER_EDITED = ("name", "prefix", "belongs_to", "state", "created_at", "last_used_at", "revoked_at")


class SymbolsForm(ModelForm):
    owner = forms.CharField(
        required=False,
        validators=(refuse_unprintable,),
        help_text="The username of whoever it belongs to, who then publishes no signals of what it may send.",
        widget=UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"}),
    )

    class Meta:
        model = IngestKey
        fields = ("symbols",)
        widgets = {"symbols": UnfoldAdminTextareaWidget(attrs={"rows": 3})}

    def clean_symbols(self) -> str:
        return check_symbols(self.cleaned_data["symbols"])

    def clean_owner(self) -> Account | None:
        if not (username := self.cleaned_data["owner"]):
            return None
        if (account := account_of(username)) is None:
            raise ValidationError(f"There is no user {username}.")
        return account

    def clean(self) -> None:
        super().clean()
        given = self.cleaned_data
        if self.instance.pk is not None and "symbols" in given:
            try:
                refuse_change(self.instance, given["symbols"], self.instance.account or given.get("owner"))
            except PowerRefused as error:
                self.add_error(None, str(error))


class IssueIngestKeyForm(SymbolsForm):
    class Meta(SymbolsForm.Meta):
        fields = ("name", "symbols")  # type: ignore[assignment]
        widgets = {**SymbolsForm.Meta.widgets, "name": UnfoldAdminTextInputWidget}

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["owner"].help_text += " Empty: you."


def issue(name: str, symbols: str, owner: Account | None, *, by: str) -> tuple[IngestKey, str]:
    return issue_ingest_key(name, symbols, by=by, account=owner or account_of(by))


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
    # Whoever issues keys may revoke anybody's.
    owner = NO_OWNER
    form = SymbolsForm
    issue_form = IssueIngestKeyForm  # type: ignore[assignment]
    issue_one = staticmethod(issue)
    revoke_one = staticmethod(revoke_ingest_key)
    list_display = ("prefix", "name", "belongs_to", "may_send", "state", "last_used_at", "created_at")
    list_select_related = ("account__user",)
    list_filter = (StateFilter,)
    search_fields = ("prefix__startswith", "name__startswith")
    search_help_text = "Prefix or name starts with…"
    readonly_fields = NEVER_EDITED

    def get_fields(self, request: HttpRequest, obj: IngestKey | None = None) -> tuple[str, ...]:
        whose = "owner" if obj is not None and obj.account is None else "belongs_to"
        return (*NEVER_EDITED[:2], whose, "symbols", *NEVER_EDITED[3:])

    @admin.display(description="Owner")
    def belongs_to(self, key: IngestKey) -> str:
        return "-" if key.account is None else key.account.user.get_username()

    @admin.display(description="May send")
    def may_send(self, key: IngestKey) -> str:
        return key.symbols or "all symbols"

    def save_model(self, request: HttpRequest, obj: IngestKey, form: Any, change: bool) -> None:
        owner = form.cleaned_data.get("owner")
        allow_symbols(obj, obj.symbols, by=request.user.get_username(), account=owner)
