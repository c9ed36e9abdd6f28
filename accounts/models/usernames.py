"""Usernames, and those that nobody new may have."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models

if TYPE_CHECKING:
    NameField = models.CharField[str, str]
else:
    NameField = models.CharField

PSEUDONYM = "deleted-"
"""What is left of a deleted account has such a name."""
PUBLISHER = "publisher-"
"""By such a name the public ledger of signals calls a user, so that it keeps nobody's own."""
PSEUDONYMS = (PSEUDONYM, PUBLISHER)
ASCII_ONLY = "Use only English letters, digits and @ . + - _, because other letters can look like these."
"""For new names: publishers are known by theirs, and nobody may look like another."""
LONGEST_NEW = 30
TOO_LONG = f"Use at most {LONGEST_NEW} characters."
"""For new names: they stand in lists, on charts and in pictures."""


def is_reserved(name: str) -> bool:
    # Forms and managers normalize a name only after it was validated.
    plain = unicodedata.normalize("NFKC", name).lower()
    return plain in settings.ACCOUNT_USERNAME_BLACKLIST or plain.startswith(PSEUDONYMS)


def fault_of_new(name: str) -> str:
    """Why nobody new may have this name; empty if they may."""
    if not name.isascii():
        return ASCII_ONLY
    return TOO_LONG if len(name) > LONGEST_NEW else ""


class UsernameField(NameField):
    """Refuses reserved names wherever users are made; whoever has one keeps it."""

    def __init__(self) -> None:
        super().__init__(
            "username",
            max_length=150,
            unique=True,
            help_text=f"At most {LONGEST_NEW} letters, digits and @ . + - _ only.",
            # A name of dots alone would be lost in the address of a page.
            validators=[
                UnicodeUsernameValidator(),
                RegexValidator(r"[^\W_]", "Use at least one letter or digit."),
            ],
            error_messages={"unique": "A user with that username already exists."},
        )

    def deconstruct(self) -> Any:
        """In migrations it is what it was before: the table is the same."""
        name, _, arguments, options = super().deconstruct()
        options["validators"] = options["validators"][:1]
        options["help_text"] = "At most 150 letters, digits and @ . + - _ only."
        return name, "django.db.models.CharField", arguments, options

    def clone(self) -> UsernameField:
        return UsernameField()

    def validate(self, value: Any, model_instance: models.Model | None) -> None:
        super().validate(value, model_instance)
        if is_reserved(value) and not has_name(model_instance, value):
            raise ValidationError(f"The username {value!r} is reserved for the service itself.")
        fault = fault_of_new(value)
        if fault and not has_name(model_instance, value):
            raise ValidationError(fault)


def has_name(user: models.Model | None, name: str) -> bool:
    """Whether the user is stored with this name."""
    if user is None or user.pk is None:
        return False
    return type(user)._default_manager.filter(pk=user.pk, username=name).exists()
