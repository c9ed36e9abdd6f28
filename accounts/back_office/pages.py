"""What the pages of all apps share: asking before an act, buttons, coloured labels, reading only."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from django.contrib import messages
from django.contrib.admin import ShowFacets
from django.core.exceptions import PermissionDenied
from django.db.models import Model, QuerySet
from django.forms import Form
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from unfold.enums import ActionVariant

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin
else:
    from unfold.admin import ModelAdmin as UnfoldModelAdmin

    class ModelAdmin(UnfoldModelAdmin):
        def __class_getitem__(cls, model):
            return cls


M = TypeVar("M", bound=Model)
Function = TypeVar("Function", bound=Callable[..., Any])

# One page of a list. More at once is a task for a command, not for a form.
MAX_CHOSEN = 100


def actor(request: HttpRequest) -> str:
    """Who did it, for control events."""
    return str(request.user.get_username())


class StaffAdmin(ModelAdmin[M]):
    list_per_page = list_max_show_all = MAX_CHOSEN
    show_full_result_count = False
    show_facets = ShowFacets.NEVER
    list_disable_select_all = True
    list_filter_submit = True

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
        """A page with a form: for one object at its own address, for several back to the list's action."""
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "media": self.media + form.media,
            "form": form,
            "title": title,
            "text": text,
            "submit_text": submit,
            "chosen": [(found.pk, self.describe(found)) for found in chosen],
            "action": action,
            "variant": "danger" if danger else "primary",
        }
        request.current_app = self.admin_site.name
        return TemplateResponse(request, "admin/ask.html", context)

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
    """Facts that staff look at and nobody edits here."""

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: M | None = None) -> bool:
        return False


def asked(request: HttpRequest) -> bool:
    """The form of `ask` came back filled in; before that, an action's POST only names the objects."""
    return request.method == "POST" and "answered" in request.POST


def button(
    description: str, *, permission: str, icon: str, danger: bool = False
) -> Callable[[Function], Function]:
    """A button on an object's page: the method gets the object, and only from those who may."""

    def decorate(method: Function) -> Function:
        @wraps(method)
        def view(self: StaffAdmin[Any], request: HttpRequest, object_id: str) -> HttpResponse:
            if not getattr(self, f"has_{permission}_permission")(request):
                raise PermissionDenied
            found = self.get_object(request, object_id)
            if found is None:
                raise Http404
            answer: HttpResponse = method(self, request, found)
            return answer

        facts = {
            "short_description": description,
            "allowed_permissions": (permission,),
            "icon": icon,
            "variant": ActionVariant.DANGER if danger else ActionVariant.DEFAULT,
            "attrs": {},
        }
        for name, value in facts.items():
            setattr(view, name, value)
        return view  # type: ignore[return-value]

    return decorate


def label(description: str, *, ordering: str | None = None, **colours: str) -> Callable[[Function], Function]:
    """A column whose text stands in a coloured label: `label("State", active="success")`."""

    def decorate(method: Function) -> Function:
        facts = {"short_description": description, "admin_order_field": ordering, "label": colours}
        for name, value in facts.items():
            setattr(method, name, value)
        return method

    return decorate
