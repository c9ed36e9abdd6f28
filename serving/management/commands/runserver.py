"""Django's `runserver`, for development, on daphne.

As an installed app daphne would bring Twisted into every command. This app stands before Django's own, whose
`runserver` knows no streams."""

from daphne.management.commands.runserver import Command

__all__ = ["Command"]
