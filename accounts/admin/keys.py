"""API keys: issued, rolled and revoked by staff."""

from __future__ import annotations

from typing import Any, ClassVar

from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest, HttpResponse

from accounts.back_office.keys import KeyAdmin
from accounts.back_office.pages import actor, asked, button
from accounts.models import ApiKey
from accounts.services import NotActive, TooManyKeys, issue_key, revoke_key, roll_key

from .key_forms import IssueForm, KeyStateFilter, LabelForm, RollForm

NEVER_EDITED = ("prefix", "account", "state", "created_at", "last_used_at", "expires_at", "revoked_at")


@admin.register(ApiKey)
class ApiKeyAdmin(KeyAdmin[ApiKey]):
    owner = "account__user"
    form = LabelForm
    issue_form = IssueForm
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
            except (NotActive, TooManyKeys) as error:
                form.add_error(None, str(error))
        text = "A successor is issued and shown once. The old key works for the overlap and then no more."
        return self.ask(request, form, title=f"Roll {key}", text=text, submit="Roll", chosen=[key])
