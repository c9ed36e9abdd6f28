"""Ending one of one's own sessions, with what its pages have open. The list is allauth's, in our look."""

from __future__ import annotations

from allauth.usersessions.models import UserSession
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.views.decorators.cache import never_cache

from .requests import PersonRequest, post_only


@post_only
@login_required
@never_cache
def end_session(request: PersonRequest, pk: int) -> HttpResponse:
    session = get_object_or_404(UserSession, user=request.user, pk=pk)
    if session.session_key == request.session.session_key:
        return redirect("account_logout")
    session.end()
    messages.success(request, f"The session from {session.ip} has ended. Its pages stop within 2 seconds.")
    return redirect("usersessions_list")
