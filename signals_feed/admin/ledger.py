"""The ledger, to look at."""

from __future__ import annotations

import uuid

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.paginator import InfinitePaginator

from accounts.back_office.pages import ReadOnlyAdmin
from signals_feed.models import LedgerEntry


@admin.register(LedgerEntry)
class LedgerEntryAdmin(ReadOnlyAdmin[LedgerEntry]):
    list_display = ("position", "kind", "signal", "hash")
    fields = ("position", "kind", "signal", "payload", "previous", "hash")
    list_filter = ("kind",)
    ordering = ("-position",)
    sortable_by = ()
    paginator = InfinitePaginator
    search_fields = ("signal",)
    search_help_text = "A signal's identifier, whole."

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[LedgerEntry], search_term: str
    ) -> tuple[QuerySet[LedgerEntry], bool]:
        try:
            return queryset.filter(signal=uuid.UUID(search_term)), False
        except ValueError:
            return queryset.none() if search_term else queryset, False
