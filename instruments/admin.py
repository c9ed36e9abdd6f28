"""The back office of instruments and their trading calendars, and the pages that take and give them as
tables."""

import base64
from collections import Counter
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from typing import Any, ClassVar, NamedTuple, TypeVar

from django import forms
from django.contrib import admin, messages
from django.contrib.sessions.backends.db import SessionStore
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.decorators import method_decorator
from django.utils.html import format_html_join
from django.utils.timezone import now
from django.views.decorators.http import require_POST
from unfold.widgets import UnfoldAdminFileFieldWidget

from accounts.back_office import StaffAdmin, staff_page

from .models import Instrument, TradingCalendar, WithheldSource
from .saving import (
    CALENDARS,
    INSTRUMENTS,
    NEW,
    SKIP,
    UPDATE,
    BadRows,
    RowChange,
    Table,
    load,
    pass_on_again,
    save,
    withhold,
)
from .sheets import BadSheet, SheetRow, read_sheet, write_sheet

# Admin pages with import and export as CSV: an import is checked and shown first, then taken as a whole.
M = TypeVar("M", bound=Model)
MAX_BYTES = 2_000_000
HELD_S = 3600


class UploadForm(forms.Form):
    import_file = forms.FileField(label="File to import", widget=UnfoldAdminFileFieldWidget)

    def clean_import_file(self) -> Any:
        file = self.cleaned_data["import_file"]
        if file.size > MAX_BYTES:
            raise forms.ValidationError(f"The file is larger than {MAX_BYTES:,} bytes.")
        return file


class ConfirmForm(forms.Form):
    import_file_name = forms.CharField(widget=forms.HiddenInput)


def hold_upload(content: bytes) -> str | None:
    """Until it is confirmed; in the database, because another process may answer then."""
    store = SessionStore()
    store.set_expiry(HELD_S)
    store["upload"] = base64.b64encode(content).decode()
    store.create()
    return store.session_key


def held_upload(store: SessionStore) -> bytes:
    try:
        return base64.b64decode(store["upload"])
    except KeyError:
        raise BadSheet("The uploaded file is no longer held. Choose it again.") from None


class ChangedRow(NamedTuple):
    kind: str
    key: str
    cells: list[tuple[str, str]]
    """Of each column that changes, its name and how."""


class Preview(NamedTuple):
    """What an import would do. Rows and cells that stay as they are would only hide it."""

    rows: list[ChangedRow]
    new: int
    updated: int
    unchanged: int


def preview_of(changes: Sequence[RowChange], columns: Sequence[str]) -> Preview:
    kinds = Counter(change.kind for change in changes)
    rows = [
        ChangedRow(change.kind, change.after[0], changed_cells(change, columns))
        for change in changes
        if change.kind != SKIP
    ]
    return Preview(rows, kinds[NEW], kinds[UPDATE], kinds[SKIP])


def changed_cells(change: RowChange, columns: Sequence[str]) -> list[tuple[str, str]]:
    cells = zip(columns[1:], change.before[1:], change.after[1:], strict=True)
    return [(name, marked(before, after)) for name, before, after in cells if before != after]


class TableAdmin(StaffAdmin[M]):
    table: ClassVar[Table]
    sortable_by = None
    change_list_template = "admin/table_list.html"

    def get_urls(self) -> list[URLPattern]:
        pages = {"process_import": self.process_import, "import": self.import_page, "export": self.export}
        own = [
            path(f"{name}/", self.admin_site.admin_view(page), name=self.address(name).removeprefix("admin:"))
            for name, page in pages.items()
        ]
        return own + super().get_urls()

    def has_import_permission(self, request: HttpRequest) -> bool:
        return self.has_add_permission(request) and self.has_change_permission(request)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        may_import = self.has_import_permission(request)
        return super().changelist_view(request, {"may_import": may_import, **(extra_context or {})})

    def save_model(self, request: HttpRequest, obj: Any, form: Any, change: bool) -> None:
        save(obj, by=request.user.get_username())

    def import_page(self, request: HttpRequest) -> HttpResponse:
        """The preview of what an upload would change."""
        if not self.has_import_permission(request):
            raise PermissionDenied
        form = UploadForm(request.POST or None, request.FILES or None)
        result: dict[str, Any] = {}
        if form.is_valid():
            content = form.cleaned_data["import_file"].read()
            try:
                result["preview"] = preview_of(self.table.check(self._read(content)), self.table.columns)
                result["confirm_form"] = ConfirmForm(initial={"import_file_name": hold_upload(content)})
            except BadSheet as error:
                form.add_error("import_file", str(error))
            except BadRows as error:
                result["problems"] = error.problems
        return self._page(request, "import", form=form, media=self.media + form.media, **result)

    @method_decorator(require_POST)
    def process_import(self, request: HttpRequest) -> HttpResponse:
        """The confirmed import: rows, control event and staff log in one transaction."""
        if not self.has_import_permission(request):
            raise PermissionDenied
        held = SessionStore(request.POST.get("import_file_name"))
        try:
            with transaction.atomic():
                changes = load(self.table, self._read(held_upload(held)), by=request.user.get_username())
                held.flush()
                self._log(request, changes)
        except (BadSheet, BadRows) as error:
            self.message_user(request, f"Nothing was imported. {error}", messages.ERROR)
            return redirect(self.address("import"))
        kinds = Counter(change.kind for change in changes)
        counts = f"{kinds[NEW]} new, {kinds[UPDATE]} changed, {kinds[SKIP]} left as they were"
        self.message_user(
            request, f"The {self.opts.verbose_name_plural} are imported: {counts}.", messages.SUCCESS
        )
        return redirect(self.address("changelist"))

    def export(self, request: HttpRequest) -> HttpResponse:
        """What the list shows, searched and filtered."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        if request.method != "POST":
            return self._page(request, "export")
        rows: Any = self.get_changelist_instance(request).queryset
        # The mark at its start tells Excel that it is UTF-8.
        content = write_sheet(self.table.columns, map(self.table.cells, rows)).encode("utf-8-sig")
        disposition = f'attachment; filename="{self.model.__name__}-{now():%Y-%m-%d}.csv"'
        return HttpResponse(content, "text/csv", headers={"Content-Disposition": disposition})

    def _read(self, content: bytes) -> list[SheetRow]:
        rows = read_sheet(content, self.table.columns)
        if not rows:
            raise BadSheet("The file has no row below its header.")
        return rows

    def _log(self, request: HttpRequest, changes: list[RowChange]) -> None:
        logs: dict[str, Callable[..., object]] = {NEW: self.log_addition, UPDATE: self.log_change}
        for change in changes:
            if change.kind in logs:
                logs[change.kind](request, change.row, "Imported.")

    def _page(self, request: HttpRequest, act: str, **context: Any) -> TemplateResponse:
        own = {"opts": self.opts, "columns": self.table.columns}
        title = f"{act.title()} {self.opts.verbose_name_plural}"
        return staff_page(request, f"admin/table_{act}.html", title, **own, **context)


def marked(before: str, after: str) -> str:
    """A cell whose words are marked as deleted, inserted or kept."""
    old, new = (text.split(" ") if text else [] for text in (before, after))
    parts = list[tuple[str, list[str]]]()
    for kind, start, end, new_start, new_end in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind == "equal":
            parts.append(("span", new[new_start:new_end]))
        else:
            parts += ("del", old[start:end]), ("ins", new[new_start:new_end])
    return format_html_join(" ", "<{0}>{1}</{0}>", ((tag, " ".join(words)) for tag, words in parts if words))


CONTRACT = (("pip_size", "digits"), ("contract_size", "margin_rate"), ("min_lot", "max_lot"))
DATA = (("source", "fallback"), ("volume_kind", "order_flow_source"), ("stale_after_s", "outlier_percent"))


@admin.register(Instrument)
class InstrumentAdmin(TableAdmin[Instrument]):
    table = INSTRUMENTS
    list_display = ("symbol", "name", "type", "calendar", "pip", "digits", "active")
    list_select_related = ("calendar",)
    list_filter = ("active", "type", "calendar")
    search_fields = ("symbol", "name")
    autocomplete_fields = ("calendar",)
    # Clients, feeds and published signals know an instrument by its symbol.
    set_once = ("symbol",)
    never = ("delete",)
    """Deactivate instead: deleting would take every candle along."""
    fieldsets = (
        (None, {"fields": ("symbol", "name", ("type", "calendar"), "active")}),
        ("Contract", {"fields": CONTRACT}),
        ("Data", {"fields": DATA}),
    )

    @admin.display(description="Pip size")
    def pip(self, instrument: Instrument) -> str:
        """Without the zeros of the column."""
        return f"{instrument.pip_size.normalize():f}"


@admin.register(TradingCalendar)
class TradingCalendarAdmin(TableAdmin[TradingCalendar]):
    table = CALENDARS
    list_display = ("name", "timezone", "sessions")
    search_fields = ("name",)
    # Tables of instruments refer to a calendar by its name.
    set_once = ("name",)

    def has_delete_permission(self, request: HttpRequest, obj: TradingCalendar | None = None) -> bool:
        used = obj is not None and obj.instruments.exists()
        return not used and super().has_delete_permission(request, obj)


@admin.register(WithheldSource)
class WithheldSourceAdmin(StaffAdmin[WithheldSource]):
    """The sources whose data must not be passed on. Deleting a row permits it again."""

    list_display = ("name", "why", "since")
    set_once = ("name",)

    def save_model(self, request: HttpRequest, obj: WithheldSource, form: Any, change: bool) -> None:
        withhold(obj, by=request.user.get_username())

    def delete_model(self, request: HttpRequest, obj: WithheldSource) -> None:
        pass_on_again([obj], by=request.user.get_username())

    def delete_queryset(self, request: HttpRequest, queryset: QuerySet[WithheldSource]) -> None:
        pass_on_again(queryset, by=request.user.get_username())


def price_column(name: str, title: str = "") -> Callable[[Any, Any], str]:
    """A column for rows that have an instrument, with its decimals; `name` is the field of the price."""

    @admin.display(description=title or name.replace("_", " ").capitalize())
    def column(page: Any, row: Any) -> str:
        price = getattr(row, name)
        return "-" if price is None else f"{price:,.{row.instrument.digits}f}"

    return column
