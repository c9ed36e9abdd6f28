"""What the settings say of sentiment models, told at start."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Warning, register

from .registry import sentiment_models


@register()
def check_sentiment_model(**kwargs: Any) -> list[CheckMessage]:
    named = settings.SENTIMENT_MODEL
    there = [model.identifier for model in sentiment_models()]
    if not named or named in there:
        return []
    hint = f"Set SENTIMENT_MODEL to one of {', '.join(there)}, or configure the model."
    return [Warning(f"There is no sentiment model {named!r}.", hint=hint, id="tickwire.W101")]
