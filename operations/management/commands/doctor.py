import sys
from argparse import ArgumentParser
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_email

from operations.doctor.diagnosis import FAIL, Diagnosis
from operations.doctor.looks import look_here
from operations.doctor.report import as_json, as_lines, summary


class Command(BaseCommand):
    help = (
        "Look whether this installation is in order: settings, data folder, database, Redis, mail, static "
        "files, clock and limits. Each fault comes with its mend; with one the exit status is 1."
    )
    # It looks at them itself, and goes on where they fail.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--mail", metavar="ADDRESS", default="", help="Send a test mail there.")
        parser.add_argument("--json", action="store_true", help="For programs: all findings at the end.")

    def handle(self, *, mail: str, json: bool, **options: Any) -> None:
        if mail:
            _check_address(mail)
        findings = []
        for found in look_here(mail):
            findings.append(found)
            if not json:
                self._show(found)
        self.stdout.write(as_json(findings) if json else f"\n{summary(findings)}")
        if any(found.level == FAIL for found in findings):
            sys.exit(1)

    def _show(self, found: Diagnosis) -> None:
        for line in as_lines([found]):
            self.stdout.write(line)
        self.stdout.flush()


def _check_address(address: str) -> None:
    try:
        validate_email(address)
    except ValidationError:
        raise CommandError(f"{address!r} is no mail address.") from None
