"""People: made, locked out and let in again; only superusers hand out power. allauth's tables stand here
without what is secret in them."""

from __future__ import annotations

from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import Model
from django.forms import ModelForm
from django.http import HttpRequest
from django.utils.html import format_html
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm

from accounts.limits.tiers import save_user_access
from accounts.models import Account, User
from accounts.rights import READY_ROLE

from .customers import VisitingUserFilter
from .staff_pages import ITSELF, ReadOnlyAdmin, StaffAdmin

PERMISSION_FIELDS = ("is_staff", "is_superuser", "groups", "user_permissions")
admin.site.unregister(Group)


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, StaffAdmin[Group]):
    sortable_by = None

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Whoever may edit a group's permissions could give themselves any; and what was changed in a ready
        # role, `migrate` would undo.
        group = self.get_object(request, str(obj)) if isinstance(obj, str | int) else obj
        is_ready = group is not None and group.name.startswith(READY_ROLE)
        return bool(request.user.is_superuser) and not is_ready

    has_add_permission = has_delete_permission = has_change_permission


@admin.register(User)
class UserAdmin(DjangoUserAdmin, StaffAdmin[User]):  # type: ignore[type-arg]
    owner = ITSELF
    never = ("delete",)
    """Deactivate instead: what a user did stays on record."""
    form = UserChangeForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "is_staff", "last_login", "date_joined")
    list_filter = (VisitingUserFilter, "is_active", "is_staff", "is_superuser")
    ordering = ("-pk",)
    search_fields = ("username__startswith", "email__startswith")
    search_help_text = "The beginning of a username or email address."
    filter_horizontal = ()
    autocomplete_fields = ("groups",)
    readonly_fields = ("password_state", "last_login", "date_joined")
    fieldsets = (
        (None, {"fields": ("username", "email", "first_name", "last_name", "is_active", "password_state")}),
        ("Powers", {"fields": PERMISSION_FIELDS}),
        ("Dates", {"fields": ("last_login", "date_joined")}),
    )

    @admin.display(description="Password")
    def password_state(self, user: User) -> str:
        state = "Set." if user.has_usable_password() else "None: this person cannot log in with one."
        return format_html('{} <a href="../password/" class="text-primary-600">Change it</a>', state)

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        return (
            self.readonly_fields if request.user.is_superuser else (*self.readonly_fields, *PERMISSION_FIELDS)
        )

    def save_model(self, request: HttpRequest, obj: Any, form: ModelForm[Any], change: bool) -> None:
        with transaction.atomic():
            super().save_model(request, obj, form, change)
            account = Account.objects.filter(user=obj).first() if "is_active" in form.changed_data else None
            if account is not None:
                save_user_access(account, by=request.user.get_username())


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
    search_fields = ("email__startswith", "user__username__startswith")
    search_help_text = "The beginning of an email address or username."
    autocomplete_fields = ("user",)


@admin.register(Authenticator)
class AuthenticatorAdmin(ReadOnlyAdmin[Model]):
    """Second factors. Whoever lost theirs is let in by deleting it; its secret is shown to nobody."""

    owner = "user"
    list_display = fields = ("user", "type", "created_at", "last_used_at")
    list_select_related = ("user",)
    list_filter = ("type",)
    ordering = ("-pk",)
    search_fields = ("user__username__startswith",)
    search_help_text = "The beginning of a username."

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(request.user.is_superuser)
