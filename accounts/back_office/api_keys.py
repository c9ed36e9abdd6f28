"""API keys: issued, rolled and revoked by staff."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django import forms
from django.contrib import admin
from django.contrib.admin.widgets import AutocompleteSelect
from django.db import transaction
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from unfold.widgets import UnfoldAdminIntegerFieldWidget, UnfoldAdminTextInputWidget

from accounts.keys.issuing import (
    MAX_OVERLAP_HOURS,
    KeyNotActive,
    TooManyKeys,
    issue_key,
    revoke_key,
    roll_key,
)
from accounts.models import Account, ApiKey
from accounts.panel.forms import IssueKeyForm, refuse_unprintable

from .key_pages import KeyAdmin
from .staff_pages import actor, asked, button

if TYPE_CHECKING:
    ModelForm = forms.ModelForm[ApiKey]
else:
    ModelForm = forms.ModelForm


class IssueApiKeyForm(IssueKeyForm):
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


NEVER_EDITED = ("prefix", "account", "state", "created_at", "last_used_at", "expires_at", "revoked_at")


@admin.register(ApiKey)
class ApiKeyAdmin(KeyAdmin[ApiKey]):
    owner = "account__user"
    form = LabelForm
    issue_form = IssueApiKeyForm
    list_display = ("prefix", "name", "account", "state", "last_used_at", "created_at")
    list_select_related = ("account__user",)
    list_filter = (KeyStateFilter,)
    search_fields = ("prefix__startswith", "account__user__username__startswith")
    search_help_text = "The beginning of a prefix or of a username."
    fields = ("prefix", "name", *NEVER_EDITED[1:])
    readonly_fields = NEVER_EDITED
    actions_detail: ClassVar[tuple[str, ...]] = ("roll", "revoke")
    useful: ClassVar[dict[str, tuple[str, ...]]] = {"active": ("roll", "revoke"), "rolled": ("revoke",)}

    def issue_one(self, *, by: str, **chosen: Any) -> tuple[ApiKey, str]:
        return issue_key(by=by, most_a_day=None, **chosen)

    def revoke_one(self, key: ApiKey, *, by: str) -> bool:
        return revoke_key(key, by=by)

    @button("Roll", permission="change", icon="autorenew")
    def roll(self, request: HttpRequest, key: ApiKey) -> HttpResponse:
        form = RollForm(request.POST if asked(request) else None)
        if form.is_valid():
            try:
                with transaction.atomic():
                    by = actor(request)
                    successor, secret = roll_key(key, **form.cleaned_data, by=by, most_a_day=None)
                    self.log_change(request, key, f"Rolled: {successor.prefix}… follows.")
                    self.log_addition(request, successor, f"Issued to follow {key.prefix}….")
                return self.show_once(request, successor, secret)
            except (KeyNotActive, TooManyKeys) as error:
                form.add_error(None, str(error))
        text = "A successor is issued and shown once. The old key works for the overlap and then no more."
        return self.ask(request, form, title=f"Roll {key}", text=text, submit="Roll", chosen=[key])
