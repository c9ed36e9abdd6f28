"""What the pages of all apps share: asking before an act, buttons, coloured labels, reading only; and that
staff cannot act on an account that may do more than they may, nor decide about their own tier.

Each page says by `owner` whose its rows are."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from django import forms
from django.contrib import admin, messages
from django.contrib.admin import ShowFacets
from django.contrib.auth.models import Permission
from django.core.checks import CheckMessage, Error
from django.core.exceptions import PermissionDenied
from django.db import models
from django.db.models import DateTimeField, DecimalField, Field, FloatField, IntegerField, Model, Q, QuerySet
from django.forms import Form, SplitDateTimeField
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.text import capfirst
from unfold.decorators import action, display
from unfold.enums import ActionVariant
from unfold.widgets import UnfoldAdminSplitDateTimeWidget, UnfoldAdminTextInputWidget

from accounts.form_fields import (
    DecimalNumberField,
    FloatNumberField,
    WholeNumberField,
    refuse_invisible,
    refuse_invisible_in_lines,
    refuse_unprintable,
)
from accounts.models import Account, User
from accounts.rights import publishing_right

# What a form changed, worded so that it stays true when the row changes again.
MOST_NAMED = 5
MINUS = "\N{MINUS SIGN}"


def described_change(form: forms.Form, name: str) -> str:
    """The field, and its new value unless that names a person: the log outlives the people it is about."""
    field = form.fields.get(name)
    if field is None:
        return name
    label = str(field.label or name.replace("_", " ").capitalize())
    value = new_value(field, form.get_initial_for_field(field, name), form.cleaned_data.get(name))
    return f"{label} ({value})" if value else label


def new_value(field: forms.Field, before: Any, after: Any) -> str:
    choices: Any = getattr(field, "choices", ())
    match field:
        case forms.BooleanField():
            return "now on" if after else "now off"
        case forms.ModelMultipleChoiceField():
            return given_and_taken(list(before or ()), list(after or ()))
        case forms.ModelChoiceField() if field.queryset is not None and is_person(field.queryset.model):
            return ""
        case forms.ModelChoiceField() | forms.IntegerField() if after in (None, ""):
            return "now none"
        case forms.ModelChoiceField():
            return f"now {after}"
        case forms.IntegerField():
            return f"now {after}".replace("-", MINUS)
        case forms.ChoiceField():
            return f"now {dict(choices).get(after, after)}" if isinstance(after, str) else ""
        case _:
            return ""


def is_person(model: type[Model]) -> bool:
    return model in (User, Account)


def given_and_taken(before: list[Model], after: list[Model]) -> str:
    parts = (("added", added(before, after)), ("removed", added(after, before)))
    return "; ".join(f"{word} {names}" for word, names in parts if names)


def added(before: list[Model], after: list[Model]) -> str:
    names = [str(getattr(row, "name", row)) for row in after if row not in before]
    more = len(names) - MOST_NAMED
    return ", ".join(names[:MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


# Others can see what staff type: no direction marks, no control characters.
class VisibleText:
    """A part of pages and of the rows within them."""

    def formfield_for_dbfield(self, db_field: Any, request: Any, **options: Any) -> Any:
        field: Any = super().formfield_for_dbfield(db_field, request, **options)  # type: ignore[misc]
        # Some names are checked more strictly.
        if isinstance(field, forms.CharField) and refuse_unprintable not in field.validators:
            has_lines = isinstance(db_field, models.TextField)
            field.validators.append(refuse_invisible_in_lines if has_lines else refuse_invisible)
        return field


if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
else:
    from unfold.admin import ModelAdmin as UnfoldModelAdmin

    class ModelAdmin(UnfoldModelAdmin):
        def __class_getitem__(cls, model):
            return cls


M = TypeVar("M", bound=Model)
Function = TypeVar("Function", bound=Callable[..., Any])


class UtcTimeField(SplitDateTimeField):
    def __init__(self, *, label: str, **options: Any) -> None:
        super().__init__(label=f"{label} (UTC)", **options)


TIMES: dict[type[Field[Any, Any]], dict[str, Any]] = {
    DateTimeField: {"form_class": UtcTimeField, "widget": UnfoldAdminSplitDateTimeWidget}
}
# As text, because number fields of browsers drop separators.
NUMBERS: dict[type[Field[Any, Any]], dict[str, Any]] = {
    kind: {"form_class": form_class, "widget": UnfoldAdminTextInputWidget(attrs={"inputmode": mode})}
    for kind, form_class, mode in (
        (DecimalField, DecimalNumberField, "decimal"),
        (FloatField, FloatNumberField, "decimal"),
        (IntegerField, WholeNumberField, "numeric"),
    )
}

# One page of a list. Larger changes are a task for a command.
MAX_CHOSEN = 100
BEYOND_REACH = "you cannot act on an account that may do more than you may."


ITSELF = "pk"
"""The `owner` of pages of users."""
NO_OWNER = ""
"""The `owner` of rows that belong to no person, or that staff act on whatever their owner may do."""
# No row is farther from its owner.
FARTHEST = 2


def within_reach(of: User) -> QuerySet[User]:
    """Users without a power that `of` lacks. Those locked out keep theirs, for when they are let in again.
    Publishing signals is no power: it cannot harm another account."""
    if of.is_superuser:
        return User.objects.all()
    # By stored powers, not those in force: a locked superuser has none at the moment.
    beyond = Permission.objects.exclude(Q(user=of) | Q(group__user=of) | publishing_right.is_it())
    return (
        User.objects.filter(is_superuser=False)
        .exclude(user_permissions__in=beyond)
        .exclude(groups__permissions__in=beyond)
    )


def reached(request: HttpRequest, rows: QuerySet[Any], owner: str) -> QuerySet[Any]:
    """The rows that the staff member may act on."""
    staff = staff_of(request)
    if owner == NO_OWNER or staff.is_superuser:
        return rows
    return rows.filter(**{f"{owner}__in": within_reach(staff).values("pk")})


def staff_of(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # noqa: S101 - the site admits only users
    return request.user


def owner_of(row: Model, owner: str) -> User | None:
    if owner == NO_OWNER:
        return None
    found: Any = row if owner == ITSELF else attrgetter(owner.replace("__", "."))(row)
    return found if isinstance(found, User) else None


def leads_to_a_person(model: type[Model], steps: int = FARTHEST) -> bool:
    """Whether rows of a model belong to a person, so that their pages must name the owner."""
    if model in (User, Account):
        return True
    related = (field.related_model for field in model._meta.concrete_fields if field.is_relation)
    return steps > 0 and any(leads_to_a_person(each, steps - 1) for each in related if isinstance(each, type))


def staff_page(request: HttpRequest, template: str, title: str, **context: Any) -> TemplateResponse:
    """A page with the menu and the other shared parts of the staff's site."""
    request.current_app = admin.site.name
    context = {**admin.site.each_context(request), "title": title, **context}
    return TemplateResponse(request, template, context)


class StaffAdmin(VisibleText, ModelAdmin[M]):
    owner: ClassVar[str | None] = None
    """The lookup from a row to the person who owns it; `NO_OWNER` where rows have none."""
    decides_about_owner: ClassVar[bool] = False
    """Staff cannot decide on their own rows, whatever their permissions."""
    never: ClassVar[tuple[str, ...]] = ()
    """Which of "add", "change" and "delete" these pages never offer."""
    called: ClassVar[tuple[str, str] | None] = None
    """What one row and what several are called, where their model says it otherwise."""
    set_once: ClassVar[tuple[str, ...]] = ()
    """Fields that are read-only once the row exists."""
    formfield_overrides = {**NUMBERS, **TIMES}
    sortable_by: ClassVar[tuple[str, ...] | None] = ()
    list_per_page = list_max_show_all = MAX_CHOSEN
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    list_disable_select_all = True
    list_filter_submit = True

    def check(self, **kwargs: Any) -> list[CheckMessage]:
        found = super().check(**kwargs)
        if self.owner is None and leads_to_a_person(self.model):
            name = type(self).__name__
            hint = "Set `owner`: without it staff could act on accounts that may do more than they may."
            error = Error(
                f"{name} does not say whose its rows are.", hint=hint, obj=type(self), id="accounts.E001"
            )
            found.append(error)
        return found

    def reaches(self, request: HttpRequest, row: M) -> bool:
        """Whether this staff member may act on a row, whatever their permissions say of its kind."""
        person = owner_of(row, self.owner or NO_OWNER)
        staff = staff_of(request)
        if self.decides_about_owner and person == staff and not staff.is_superuser:
            return False
        return person is None or person.pk is None or within_reach(staff).filter(pk=person.pk).exists()

    def _may(self, request: HttpRequest, obj: Any) -> bool:
        # Buttons ask with the text of a key instead of a row.
        row = self.get_object(request, str(obj)) if isinstance(obj, str | int) else obj
        return row is None or self.reaches(request, row)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return "add" not in self.never and super().has_add_permission(request)

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        may = "change" not in self.never and super().has_change_permission(request, obj)
        return may and self._may(request, obj)

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        may = "delete" not in self.never and super().has_delete_permission(request, obj)
        return may and self._may(request, obj)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        # Django's own is "Select account to change".
        title = capfirst(self.called[1] if self.called else str(self.opts.verbose_name_plural))
        return super().changelist_view(request, {"title": title, **(extra_context or {})})

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **options: Any
    ) -> HttpResponse:
        """Without a button to save where nothing can be changed."""
        can_change = bool(context["adminform"].form.fields or context["inline_admin_formsets"])
        buttons = {"show_save_and_add_another": False}
        if not can_change:
            buttons |= {"show_save": False, "show_save_and_continue": False}
        return super().render_change_form(request, {**context, **buttons}, *args, **options)

    def get_readonly_fields(self, request: HttpRequest, obj: M | None = None) -> Any:
        fields = super().get_readonly_fields(request, obj)
        return (*self.set_once, *fields) if obj else fields

    def formfield_for_foreignkey(self, db_field: Any, request: Any, **options: Any) -> Any:
        """Only people within reach can be chosen as the owner of a row."""
        first, _, rest = (self.owner or NO_OWNER).partition("__")
        if first == db_field.name:
            people = options.get("queryset")
            if people is None:
                people = db_field.remote_field.model._default_manager.all()
            options["queryset"] = reached(request, people, rest or ITSELF)
        return super().formfield_for_foreignkey(db_field, request, **options)

    def save_form(self, request: HttpRequest, form: Any, change: bool) -> Any:
        """The last check before anything is written: the form may have given the row to another person."""
        row = super().save_form(request, form, change)
        self.refuse_beyond_reach(request, row)
        return row

    def construct_change_message(
        self, request: HttpRequest, form: Any, formsets: Any, add: bool = False
    ) -> list[dict[str, dict[str, Any]]]:
        """With the new values, because the row may change again."""
        message: list[dict[str, dict[str, Any]]] = super().construct_change_message(
            request, form, formsets, add
        )
        for part in message:
            if "fields" in part.get("changed", {}) and "name" not in part["changed"]:
                part["changed"]["fields"] = [described_change(form, name) for name in form.changed_data]
        return message

    def refuse_beyond_reach(self, request: HttpRequest, row: M) -> None:
        if not self.reaches(request, row):
            raise PermissionDenied

    def response_action(self, request: HttpRequest, queryset: QuerySet[M], *args: Any, **options: Any) -> Any:
        """Actions of a list receive only rows within reach."""
        within = reached(request, queryset, self.owner or NO_OWNER)
        if self.decides_about_owner and not staff_of(request).is_superuser:
            within = within.exclude(**{str(self.owner): request.user})
        chosen = queryset.filter(pk__in=request.POST.getlist("_selected_action"))
        beyond = 0 if within is queryset else chosen.exclude(pk__in=within.values("pk")).count()
        if beyond:
            self.message_user(request, f"{beyond} left alone: {BEYOND_REACH}", messages.ERROR)
        return super().response_action(request, within, *args, **options)

    def ask(
        self,
        request: HttpRequest,
        form: Form,
        *,
        title: str,
        text: str,
        submit: str,
        chosen: Iterable[M] = (),
        action: str = "",
        danger: bool = False,
    ) -> TemplateResponse:
        """A page with a form: for one object at its own address, for several back to the list's action. It
        comes back with the field `answered`; before that, an action's POST only names the objects."""
        return staff_page(
            request,
            "admin/ask.html",
            title,
            opts=self.opts,
            media=self.media + form.media,
            form=form,
            text=text,
            submit_text=submit,
            chosen=[(found.pk, self.describe(found)) for found in chosen],
            action=action,
            variant="danger" if danger else "primary",
        )

    def address(self, page: str) -> str:
        """The name of one of its pages, such as `changelist`."""
        return f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}"

    def describe(self, chosen: M) -> str:
        """How a page asks about an object and a message speaks of it."""
        return str(chosen)

    def few_enough(self, request: HttpRequest, queryset: QuerySet[M]) -> list[M] | None:
        """The chosen objects, or a refusal: select-all across pages is not offered, but can be sent."""
        chosen = list(queryset[: MAX_CHOSEN + 1])
        if len(chosen) <= MAX_CHOSEN:
            return chosen
        self.message_user(request, f"Choose {MAX_CHOSEN} at most.", messages.ERROR)
        return None


class ReadOnlyAdmin(StaffAdmin[M]):
    """Facts that staff can see but not edit here."""

    never = ("add", "change", "delete")


def button(
    description: str, *, permission: str, icon: str, danger: bool = False
) -> Callable[[Function], Function]:
    """A button on an object's page: the method gets the object, and only from those who may."""

    def decorate(method: Function) -> Function:
        @wraps(method)
        def view(self: StaffAdmin[Any], request: HttpRequest, object_id: str) -> HttpResponse:
            found = self.get_object(request, object_id)
            if found is None:
                raise Http404
            if not getattr(self, f"has_{permission}_permission")(request, found):
                raise PermissionDenied
            answer: HttpResponse = method(self, request, found)
            return answer

        variant = ActionVariant.DANGER if danger else ActionVariant.DEFAULT
        made: Function = action(
            view, description=description, permissions=(permission,), icon=icon, variant=variant
        )
        return made

    return decorate


def label(description: str, **colours: str) -> Callable[[Function], Function]:
    """A column whose text stands in a coloured label: `label("State", active="success")`."""
    made: Callable[[Function], Function] = display(description=description, label=colours)
    return made
