"""allauth's tables, without what is secret in them."""

from __future__ import annotations

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from accounts.back_office.pages import ReadOnlyAdmin, StaffAdmin

admin.site.unregister(EmailAddress)
admin.site.unregister(Authenticator)
# Everybody ends their own, in the settings panel.
admin.site.unregister(UserSession)


@admin.register(EmailAddress)
class EmailAddressAdmin(StaffAdmin[Model]):
    owner = "user"
    list_display = ("email", "user", "primary", "verified")
    list_select_related = ("user",)
    list_filter = ("verified",)
    ordering = ("-pk",)
    sortable_by = ()
    search_fields = ("email__startswith", "user__username__startswith")
    search_help_text = "The beginning of an e-mail address or username."
    autocomplete_fields = ("user",)


@admin.register(Authenticator)
class AuthenticatorAdmin(ReadOnlyAdmin[Model]):
    """Second factors. Whoever lost theirs is let in by deleting it; its secret is shown to nobody."""

    owner = "user"
    list_display = fields = ("user", "type", "created_at", "last_used_at")
    list_select_related = ("user",)
    list_filter = ("type",)
    ordering = ("-pk",)
    sortable_by = ()
    search_fields = ("user__username__startswith",)
    search_help_text = "The beginning of a username."

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(request.user.is_superuser)
