"""Admin pages with import and export as CSV: checked and shown first, then taken as a whole."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar

from django import forms
from django.contrib import messages
from django.contrib.sessions.backends.db import SessionStore
from django.core.exceptions import ValidationError
from django.db import transaction
from django.db.models import Model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from import_export.admin import ImportExportMixin
from import_export.formats.base_formats import CSV
from import_export.tmp_storages import BaseStorage
from unfold.contrib.import_export.forms import ExportForm, ImportForm

from accounts.back_office.staff_pages import StaffAdmin, actor

from .resources import TableResource
from .services import BadRows, load
from .sheets import BadSheet, Sheet, read_sheet, write_sheet

M = TypeVar("M", bound=Model)
MAX_BYTES = 2_000_000
HELD_S = 3600


class HeldUpload(BaseStorage):  # type: ignore[misc]
    """A file between preview and confirmation: in the database, because another process may be asked then."""

    def save(self, data: bytes) -> None:
        store = SessionStore()
        store.set_expiry(HELD_S)
        store["upload"] = base64.b64encode(data).decode()
        store.create()
        self.name = store.session_key

    def read(self) -> bytes:
        try:
            return base64.b64decode(SessionStore(self.name)["upload"])
        except KeyError:
            raise BadSheet("The uploaded file is no longer held. Choose it again.") from None

    def remove(self) -> None:
        SessionStore(self.name).flush()


class SheetImportForm(ImportForm):  # type: ignore[misc]
    def clean_import_file(self) -> Any:
        file = self.cleaned_data["import_file"]
        if file.size > MAX_BYTES:
            raise forms.ValidationError(f"The file is larger than {MAX_BYTES:,} bytes.")
        return file


def sheet_format(resource: type[TableResource]) -> type[CSV]:
    class SheetFormat(CSV):  # type: ignore[misc]
        def create_dataset(self, content: bytes, **_: Any) -> Sheet:
            return read_sheet(content, resource.columns())

        def export_data(self, dataset: Any, **_: Any) -> bytes:
            # The mark at its start tells Excel that it is UTF-8.
            return write_sheet(dataset.headers, dataset).encode("utf-8-sig")

        def is_binary(self) -> bool:
            return True

    return SheetFormat


class SheetAdmin(ImportExportMixin, StaffAdmin[M]):  # type: ignore[misc]
    resource: ClassVar[type[TableResource]]
    import_form_class = SheetImportForm
    export_form_class = ExportForm
    tmp_storage_class = HeldUpload

    def get_resource_classes(self, request: HttpRequest) -> list[type[TableResource]]:
        return [self.resource]

    def get_import_formats(self) -> list[type[CSV]]:
        return [sheet_format(self.resource)]

    get_export_formats = get_import_formats

    def has_import_permission(self, request: HttpRequest) -> bool:
        return self.has_add_permission(request) and self.has_change_permission(request)

    def has_export_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def add_data_read_fail_error_to_form(self, form: forms.Form, error: Exception) -> None:
        if not isinstance(error, BadSheet):
            raise error
        form.add_error("import_file", ValidationError(str(error)))

    def process_import(self, request: HttpRequest, **kwargs: Any) -> HttpResponse:
        """The confirmed import: rows, control event and staff log in one transaction."""
        try:
            with transaction.atomic():
                answer: HttpResponse = super().process_import(request, **kwargs)
                return answer
        except (BadSheet, BadRows) as error:
            self.message_user(request, f"Nothing was imported. {error}", messages.ERROR)
            return redirect(f"admin:{self.opts.app_label}_{self.opts.model_name}_import")

    def process_dataset(self, dataset: Sheet, form: forms.Form, request: HttpRequest, **_: Any) -> Any:
        return load(self.resource, dataset, by=actor(request))

    def generate_log_entries(self, result: Any, request: HttpRequest) -> None:
        for row in result.rows:
            if row.import_type == row.IMPORT_TYPE_NEW:
                self.log_addition(request, row.instance, "Imported.")
            elif row.import_type == row.IMPORT_TYPE_UPDATE:
                self.log_change(request, row.instance, "Imported.")

    def get_import_data_kwargs(self, **kwargs: Any) -> Mapping[str, Any]:
        return {"use_transactions": True, "rollback_on_validation_errors": True}
