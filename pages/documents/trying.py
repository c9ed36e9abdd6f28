"""What `try it` is filled with, so that a reader who only presses Send gets an answer."""

from typing import Any, NamedTuple

from django.conf import settings
from django.http import HttpRequest
from django.middleware.csrf import get_token

from signals_feed.models import Signal

from .reference.operations import Operation, Parameter

OWN_KEY_ONLY = {"Archive"}
"""The groups of endpoints that pages may not read."""
LISTED_BY = {"id": "listSignals", "user": "listSignals", "path": "listArchive"}


class TrialInput(NamedTuple):
    parameter: Parameter
    value: str
    listed_by: str
    """The endpoint that lists such values; empty where no value has to be looked up."""


def has_page_key(request: HttpRequest) -> bool:
    """The page's own requests need a key, which somebody without an account has in the demo only."""
    return settings.PUBLIC_TERMINAL or request.user.is_authenticated


def trial(request: HttpRequest) -> dict[str, Any]:
    """What `try it` needs to send a request or open a socket."""
    may = has_page_key(request)
    return {"has_page_key": may, "trial": {"csrf": get_token(request) if may else "", "hasPageKey": may}}


def known_values(operation: Operation, symbol: str) -> dict[str, str]:
    """Of the parameters in its path, those for which this service has an answer now."""
    needed = {each.name for each in operation.parameters if each.is_required}
    known = {"symbol": symbol}
    if needed & {"id", "user"} and (signal := example_signal()):
        known |= {"id": str(signal.pk), "user": signal.user.get_username()}
    return known


def example_signal() -> Signal | None:
    """A closed one, if there is any: its proof has every part."""
    feed = Signal.objects.for_feed().select_related("user")
    return feed.with_status("closed").first() or feed.first()


def inputs(operation: Operation, known: dict[str, str]) -> list[TrialInput]:
    return [trial_input(each, known) for each in operation.parameters]


def trial_input(parameter: Parameter, known: dict[str, str]) -> TrialInput:
    if not parameter.is_required:
        return TrialInput(parameter, "", "")
    return TrialInput(parameter, known.get(parameter.name, ""), LISTED_BY.get(parameter.name, ""))
