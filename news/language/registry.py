"""The language models that the settings name: none by default."""

from __future__ import annotations

from functools import cache

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from .endpoint import Endpoint
from .model import LanguageModel


@cache
def language_models() -> tuple[LanguageModel, ...]:
    endpoints = [Endpoint(**facts) for facts in settings.LANGUAGE_ENDPOINTS if facts["model"]]
    for endpoint in endpoints:
        if fault := endpoint.fault():
            raise ImproperlyConfigured(fault)
    return tuple(LanguageModel(endpoint) for endpoint in endpoints)


def language_model(identifier: str) -> LanguageModel | None:
    return next((model for model in language_models() if model.identifier == identifier), None)
