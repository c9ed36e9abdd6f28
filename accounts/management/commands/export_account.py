import os
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.checks import Tags
from django.core.management.base import BaseCommand, CommandError

from accounts.models import User
from accounts.own_data import account_data


class Command(BaseCommand):
    help = "Write everything that is stored about one person into a ZIP file, as their settings page does."
    requires_system_checks = (Tags.security,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("username")
        parser.add_argument("file", nargs="?", type=Path, help="Default: USERNAME.zip here.")

    def handle(self, *, username: str, file: Path | None, **options: Any) -> None:
        user = User.objects.filter(username=username).first()
        if user is None:
            raise CommandError(f"There is no user {username}.")
        path = file or Path(f"{username.replace('/', '_')}.zip")
        try:
            # Readable only by its owner, and never overwrites a file.
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                out.write(account_data.packed(user))
        except OSError as error:
            raise CommandError(f"{path} could not be written: {error.strerror}.") from None
        self.stdout.write(f"{path} has everything that is stored about {username}.")
