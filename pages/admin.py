"""The texts of the site in the back office: edited, never added or deleted."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils import timezone

from accounts.back_office import StaffAdmin

from .front import first_text
from .models import SiteText


@admin.register(SiteText)
class SiteTextAdmin(StaffAdmin[SiteText]):
    list_display = ("__str__", "changed_at")
    sortable_by = None
    fields = ("name", "body", "changed_at")
    readonly_fields = ("name", "changed_at")
    never = ("add", "delete")

    def save_model(self, request: HttpRequest, obj: SiteText, form: Any, change: bool) -> None:
        is_ours = obj.body.strip() != ""
        obj.body = obj.body if is_ours else first_text(obj.name)
        obj.changed_at = timezone.now() if is_ours else None
        super().save_model(request, obj, form, change)

    def get_view_on_site_url(self, obj: SiteText | None = None) -> str | None:
        return None if obj is None else f"/{obj.name}"
