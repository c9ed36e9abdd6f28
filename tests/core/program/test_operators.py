from __future__ import annotations

import getpass
import os

import pytest
from django.core.exceptions import ValidationError

from accounts.models import User
from core.program.operators import operator


def test_operator_is_called_as_no_user_can_be(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "ada")
    assert operator() == "ada (operator)"
    with pytest.raises(ValidationError, match="username"):
        User(username=operator(), password="!").clean_fields()  # noqa: S106 - no password


def test_number_without_a_name_is_an_operator_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in the image, whose user is a number."""

    def unknown() -> str:
        raise KeyError("getpwuid(): uid not found: 10001")

    monkeypatch.setattr(getpass, "getuser", unknown)
    assert operator() == f"{os.getuid()} (operator)"
