"""Usernames, and those that nobody new may have."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.contrib.auth.validators import UnicodeUsernameValidator
from django.core.exceptions import ValidationError
from django.core.validators import RegexValidator
from django.db import models

from accounts.looks import look_of

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


RESERVED = "This username is reserved for the service itself: choose another one."
LOOKS_LIKE_ANOTHER = (
    "This username looks like that of a publisher: choose one that differs in more than case, punctuation and"
    " letters that look alike, such as o and 0, or l and 1."
)
OURS = "tickwire"


def nobodys(name: str, user_id: int | None) -> bool:
    return False


class PublishersNames:
    are_taken: Callable[[str, int | None], bool] = staticmethod(nobodys)
    """Whether a name looks like one under which somebody else published."""


publishers_names = PublishersNames()


def is_reserved(name: str) -> bool:
    look = look_of(name)
    return (
        look in map(look_of, settings.ACCOUNT_USERNAME_BLACKLIST)
        or look_of(OURS) in look
        or look.startswith(tuple(map(look_of, PSEUDONYMS)))
    )


def fault_of_new(name: str, user_id: int | None = None) -> str:
    """Why this name may not become anybody's, or this user's; empty if it may."""
    if is_reserved(name):
        return RESERVED
    if not name.isascii():
        return ASCII_ONLY
    if len(name) > LONGEST_NEW:
        return TOO_LONG
    return LOOKS_LIKE_ANOTHER if publishers_names.are_taken(name, user_id) else ""


class UsernameField(NameField):
    """Refuses new names that mislead, wherever users are made or renamed; whoever has one keeps it."""

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
        fault = fault_of_new(value, None if model_instance is None else model_instance.pk)
        if fault and not has_name(model_instance, value):
            raise ValidationError(fault)


def has_name(user: models.Model | None, name: str) -> bool:
    """Whether the user is stored with this name."""
    if user is None or user.pk is None:
        return False
    return type(user)._default_manager.filter(pk=user.pk, username=name).exists()
