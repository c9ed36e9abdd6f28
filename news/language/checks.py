"""What the settings say of endpoints, told at start and not by the first news item."""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

from .endpoint import Endpoint


@register()
def check_endpoints(**kwargs: Any) -> list[CheckMessage]:
    endpoints = [Endpoint(**facts) for facts in settings.LANGUAGE_ENDPOINTS if facts["model"]]
    return [Error(fault, id="tickwire.E101") for endpoint in endpoints if (fault := endpoint.fault())]
