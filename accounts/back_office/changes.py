"""What a form changed, in words that stay true when the row changes again."""

from __future__ import annotations

from typing import Any

from django import forms
from django.db.models import Model

from accounts.models import Account, User

MOST_NAMED = 5
MINUS = "\N{MINUS SIGN}"


def said_change(form: forms.Form, name: str) -> str:
    """The field, and its new value where that names nobody: the log outlives the people it is about."""
    field = form.fields.get(name)
    if field is None:
        return name
    label = str(field.label or name.replace("_", " ").capitalize())
    said = new_value(field, form.get_initial_for_field(field, name), form.cleaned_data.get(name))
    return f"{label} ({said})" if said else label


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
