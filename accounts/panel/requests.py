"""Requests of people who are logged in."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from accounts.models import User


class PersonRequest(HttpRequest):
    """A request behind `login_required`."""

    user: User


def post_only(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Whoever opens an action's address gets a page that leads back."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method == "POST":
            return view(request, *args, **kwargs)
        refusal = render(request, "405.html", status=405)
        refusal["Allow"] = "POST"
        return refusal

    return answer
