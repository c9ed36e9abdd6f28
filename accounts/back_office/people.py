"""People: made, locked out and let in again; only superusers hand out power. allauth's tables stand here
without what is secret in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django import forms
from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin as DjangoGroupAdmin
from django.contrib.auth.admin import UserAdmin as DjangoUserAdmin
from django.contrib.auth.models import Group, Permission
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from django.utils.html import format_html
from unfold.forms import AdminPasswordChangeForm, UserChangeForm, UserCreationForm
from unfold.widgets import UnfoldBooleanSwitchWidget

from accounts.ending.sessions import end_sessions
from accounts.limits.tiers import save_user_access
from accounts.login.factors import FACTOR_NAMES, publish_factor
from accounts.models import Account, User
from accounts.rights import READY_ROLE, PowerRefused, power_guard, publishing_right
from core.events.kinds import EventKind

from .customers import VisitingUserFilter
from .owners import OwnerTold
from .staff_pages import ITSELF, ReadOnlyAdmin, StaffAdmin

POWERS = ("is_staff", "is_superuser", "groups")
RAW_POWERS = "user_permissions"
admin.site.unregister(Group)


class UserForm(UserChangeForm):  # type: ignore[misc]
    may_publish = forms.BooleanField(
        label="May publish signals",
        required=False,
        widget=UnfoldBooleanSwitchWidget,
        help_text="Under their own name. Each signal is public and final.",
    )

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "may_publish" in self.fields:
            self.initial["may_publish"] = publishing_right.is_held_by(self.instance)

    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if given.keys() >= {*POWERS, RAW_POWERS}:
            powers = {name: given[name] for name in POWERS}
            try:
                power_guard.refuse_powers(self.instance, **powers, permissions=given[RAW_POWERS])
            except PowerRefused as error:
                self.add_error(None, str(error))
        return given


class RoleForm(forms.ModelForm):  # type: ignore[type-arg]
    def clean(self) -> dict[str, Any]:
        given: dict[str, Any] = super().clean() or self.cleaned_data
        if self.instance.pk is not None:
            try:
                power_guard.refuse_role(self.instance, given.get("permissions", ()))
            except PowerRefused as error:
                self.add_error(None, str(error))
        return given


@admin.register(Group)
class GroupAdmin(DjangoGroupAdmin, StaffAdmin[Group]):
    form = RoleForm
    called = ("role", "roles")
    sortable_by = None

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        # Whoever may edit a group's permissions could give themselves any; and what was changed in a ready
        # role, `migrate` would undo.
        group = self.get_object(request, str(obj)) if isinstance(obj, str | int) else obj
        is_ready = group is not None and group.name.startswith(READY_ROLE)
        return bool(request.user.is_superuser) and not is_ready

    has_add_permission = has_delete_permission = has_change_permission


@admin.register(User)
class UserAdmin(OwnerTold, DjangoUserAdmin, StaffAdmin[User]):  # type: ignore[type-arg]
    owner = ITSELF
    never = ("delete",)
    """Deactivate instead: what a user did stays on record."""
    form = UserForm
    add_form = UserCreationForm
    change_password_form = AdminPasswordChangeForm
    list_display = ("username", "email", "is_active", "is_staff", "last_login", "date_joined")
    list_filter = (VisitingUserFilter, "is_active", "is_staff", "is_superuser")
    ordering = ("-pk",)
    search_fields = ("username__startswith", "email__startswith")
    search_help_text = "Username or email starts with…"
    filter_horizontal = ()
    autocomplete_fields = ("groups",)
    readonly_fields = ("password_state", "last_login", "date_joined")
    fieldsets = (
        (None, {"fields": ("username", "email", "is_active", "password_state", "last_login", "date_joined")}),
        ("What they may do", {"fields": ("groups", "may_publish", "is_staff", "is_superuser")}),
    )
    # For superusers.
    raw_powers = ("Single permissions", {"fields": (RAW_POWERS,), "classes": ("collapse",)})
    add_fieldsets = ((None, {"fields": ("username", "password1", "password2")}),)

    def get_object(self, request: HttpRequest, object_id: str, from_field: Any = None) -> User | None:
        user: User | None = super().get_object(request, object_id, from_field)
        if user is not None:
            user.changed_by = request.user.get_username()
        return user

    @admin.display(description="Password")
    def password_state(self, user: User) -> str:
        state = "Set." if user.has_usable_password() else "None: this person cannot log in with one."
        return format_html('{} <a href="../password/" class="text-primary-600">Change it</a>', state)

    @admin.display(boolean=True, description="May publish signals")
    def may_publish(self, user: User) -> bool:
        """For those who may not change it."""
        return publishing_right.is_held_by(user)

    def get_fieldsets(self, request: HttpRequest, obj: Any = None) -> Any:
        shown = list(super().get_fieldsets(request, obj))
        if obj and not self.has_change_permission(request, obj):
            shown = [(title, {"fields": without_password(part["fields"])}) for title, part in shown]
        return [*shown, self.raw_powers] if obj and request.user.is_superuser else shown

    def get_readonly_fields(self, request: HttpRequest, obj: Any = None) -> tuple[str, ...]:
        fixed = () if request.user.is_superuser else (*POWERS, RAW_POWERS, "may_publish")
        return (*self.readonly_fields, *fixed)

    def formfield_for_manytomany(self, db_field: Any, request: Any, **options: Any) -> Any:
        if db_field.name == RAW_POWERS:
            # That one has a switch.
            options["queryset"] = Permission.objects.exclude(publishing_right.is_it()).select_related(
                "content_type"
            )
        return super().formfield_for_manytomany(db_field, request, **options)

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        super().save_related(request, form, formsets, change)
        # After the single permissions, which are written as a whole.
        user, by, is_held = form.instance, request.user.get_username(), form.cleaned_data.get("may_publish")
        if is_held is not None:
            publishing_right.set_for(user, is_held=is_held)
        # All rows before the first event: whoever writes events makes others wait.
        if "is_active" in form.changed_data:
            account = Account.objects.filter(user=user).first()
            if not user.is_active:
                end_sessions(user)
            if account is not None:
                save_user_access(account, by=by)
        if "may_publish" in form.changed_data:
            publishing_right.announce(user, is_held=bool(is_held), by=by)


def without_password(fields: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(field for field in fields if field != "password_state")


admin.site.unregister(EmailAddress)
admin.site.unregister(Authenticator)

# Everybody ends their own, in the settings panel.
admin.site.unregister(UserSession)


@admin.register(EmailAddress)
class EmailAddressAdmin(OwnerTold, StaffAdmin[Model]):
    owner = "user"
    list_display = ("email", "user", "primary", "verified")
    list_select_related = ("user",)
    list_filter = ("verified",)
    ordering = ("-pk",)
    search_fields = ("email__startswith", "user__username__startswith")
    search_help_text = "Email or username starts with…"
    autocomplete_fields = ("user",)


class FactorFilter(admin.SimpleListFilter):
    title, parameter_name = "type", "type"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [*FACTOR_NAMES.items()]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Any]) -> QuerySet[Any]:
        return queryset.filter(type=self.value()) if self.value() in FACTOR_NAMES else queryset


@admin.register(Authenticator)
class AuthenticatorAdmin(OwnerTold, ReadOnlyAdmin[Model]):
    """Second factors. Whoever lost theirs is let in by deleting it; its secret is shown to nobody."""

    owner = "user"
    list_display = fields = ("user", "kind", "created_at", "last_used_at")
    list_select_related = ("user",)
    list_filter = (FactorFilter,)
    ordering = ("-pk",)
    search_fields = ("user__username__startswith",)
    search_help_text = "Username starts with…"

    @admin.display(description="Type")
    def kind(self, factor: Any) -> str:
        return FACTOR_NAMES[factor.type]

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(request.user.is_superuser)

    def log_deletions(self, request: HttpRequest, rows: Any) -> Any:
        for factor in rows:
            publish_factor(EventKind.FACTOR_REMOVED, factor, by=request.user.get_username())
        return super().log_deletions(request, rows)
