import sys
from argparse import ArgumentParser
from itertools import chain
from typing import Any

from django.core.exceptions import ValidationError
from django.core.management.base import BaseCommand, CommandError
from django.core.validators import validate_email

from operations.doctor.checks import check_here
from operations.doctor.diagnosis import FAIL, Diagnosis, as_json, as_lines, summary
from operations.doctor.proxy import NoAddress, check_proxy, default_url, read_url

SILENCE = "How long a stream stays silent to test whether the proxy tolerates it; 0 skips that. Default: 12."


class Command(BaseCommand):
    help = (
        "Check whether this installation is in order: settings, data folder, database, Redis, prices, mail, "
        "static files, clock, limits, and the proxy in front, through which it asks itself. Each fault "
        "comes with its fix, and makes the exit status 1."
    )
    # The command runs the checks itself, and continues after faults.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--url", default="", help="The public address. Default: the first of ALLOWED_HOSTS, by https."
        )
        parser.add_argument(
            "--silence", type=float, default=12.0, metavar="SECONDS", help=SILENCE, dest="silence_s"
        )
        parser.add_argument("--mail", metavar="ADDRESS", default="", help="Send a test mail there.")
        parser.add_argument("--json", action="store_true", help="For programs: all findings at the end.")

    def handle(self, *, mail: str, json: bool, url: str, silence_s: float, **options: Any) -> None:
        if mail:
            _check_address(mail)
        try:
            address = read_url(url or default_url())
        except NoAddress as error:
            raise CommandError(str(error)) from None
        through_proxy = check_proxy(address, is_named=bool(url), silence_s=silence_s)
        findings = []
        for found in chain(check_here(mail), through_proxy):
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
        raise CommandError(f"{address!r} is not a mail address.") from None
