"""Requests of people who are logged in, and the pages that answer them."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from accounts.models import User

View = Callable[..., HttpResponse]


class PersonRequest(HttpRequest):
    """A request behind `login_required`."""

    user: User


def post_only(view: View) -> View:
    """Opening an action's address in a browser shows a page that leads back."""

    @wraps(view)
    def answer(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if request.method == "POST":
            return view(request, *args, **kwargs)
        refusal = render(request, "405.html", status=405)
        refusal["Allow"] = "POST"
        return refusal

    return answer


def settings_page(view: View) -> View:
    """A page that can only be looked at."""
    return require_http_methods(["GET", "HEAD"])(login_required(never_cache(view)))


def settings_form(view: View) -> View:
    """A page with a form that is sent to its own address."""
    return require_http_methods(["GET", "HEAD", "POST"])(login_required(never_cache(view)))


def settings_action(view: View) -> View:
    return post_only(login_required(never_cache(view)))
