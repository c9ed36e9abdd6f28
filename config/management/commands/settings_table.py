from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from config.environment import BASE_DIR
from config.environment.values import env_example, markdown

PAGE = BASE_DIR / "docs" / "operate" / "settings.md"


class Command(BaseCommand):
    help = "Print the table of all variables of the environment, as docs/operate/settings.md has it."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--write", action="store_true", help="Write the page instead of printing it.")
        parser.add_argument(
            "--env", action="store_true", help="Print an .env file with everything as a comment."
        )

    def handle(self, *, write: bool, env: bool, **options: Any) -> None:
        if not write:
            self.stdout.write(env_example() if env else markdown())
        elif PAGE.is_file():
            PAGE.write_text(markdown())
        else:
            raise CommandError("The page exists in a checkout only: without --write the table is printed.")
