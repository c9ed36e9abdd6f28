"""What staff type in a page is text that others can see: no direction marks, no control characters."""

from typing import Any

from django import forms
from django.db import models

from accounts.one_line import refuse_invisible, refuse_invisible_in_lines, refuse_unprintable


class VisibleText:
    """A part of pages and of the rows within them."""

    def formfield_for_dbfield(self, db_field: Any, request: Any, **options: Any) -> Any:
        field: Any = super().formfield_for_dbfield(db_field, request, **options)  # type: ignore[misc]
        # Some names are checked more strictly.
        if isinstance(field, forms.CharField) and refuse_unprintable not in field.validators:
            has_lines = isinstance(db_field, models.TextField)
            field.validators.append(refuse_invisible_in_lines if has_lines else refuse_invisible)
        return field
