"""Publishing in the back office: as oneself, and by the same checks as on the publishers' page."""

from __future__ import annotations

from typing import Any

from django import forms
from unfold.widgets import UnfoldAdminSelectWidget, UnfoldAdminTextInputWidget

from signals_feed.forms import PublishForm

EXPLAINED = (
    "It is published under your own name, at once, and cannot be changed. You need the permission to"
    " publish signals; nobody publishes for somebody else."
)


class StaffPublishForm(PublishForm):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for field in self.fields.values():
            if isinstance(field, forms.ChoiceField):
                field.widget = UnfoldAdminSelectWidget(choices=field.choices)
            elif isinstance(field, forms.DecimalField):
                field.widget = UnfoldAdminTextInputWidget(attrs=dict(field.widget.attrs))
