"""What staff choose about a key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AutocompleteSelect
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils import timezone
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminTextInputWidget

from accounts.forms import IssueKeyForm, refuse_unprintable
from accounts.models import Account, ApiKey
from accounts.services import MAX_OVERLAP_HOURS

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[ApiKey]
else:
    ModelForm = forms.ModelForm


class IssueForm(IssueKeyForm):
    account = forms.ModelChoiceField(
        Account.objects.select_related("user"),
        widget=AutocompleteSelect(ApiKey._meta.get_field("account"), admin.site),
        help_text="Type the beginning of a username or e-mail address.",
    )
    field_order = ("account", "name")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.fields["name"].widget = UnfoldAdminTextInputWidget(attrs={"autocomplete": "off"})


class LabelForm(ModelForm):
    def clean_name(self) -> str:
        name: str = self.cleaned_data["name"]
        refuse_unprintable(name)
        return name


class RollForm(forms.Form):
    overlap_hours = forms.IntegerField(
        min_value=0,
        max_value=MAX_OVERLAP_HOURS,
        initial=24,
        label="Overlap in hours",
        help_text=f"0 to {MAX_OVERLAP_HOURS}. At 0 the old key stops now.",
        widget=UnfoldAdminIntegerFieldWidget,
    )


class KeyStateFilter(admin.SimpleListFilter):
    title = "state"
    parameter_name = "state"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(state, state.title()) for state in ("active", "rolled", "expired", "revoked")]

    def queryset(self, request: HttpRequest, queryset: QuerySet[ApiKey]) -> QuerySet[ApiKey]:
        now = timezone.now()
        conditions: dict[str | None, dict[str, Any]] = {
            "active": {"revoked_at": None, "expires_at": None},
            "rolled": {"revoked_at": None, "expires_at__gt": now},
            "expired": {"revoked_at": None, "expires_at__lte": now},
            "revoked": {"revoked_at__isnull": False},
        }
        return queryset.filter(**conditions.get(self.value(), {}))
