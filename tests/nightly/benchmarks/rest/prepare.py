"""`python -m tests.nightly.benchmarks.rest.prepare ROWS` fills the database of VAR_DIR and prints what peers
need."""

from __future__ import annotations

import sys
import time

import msgspec

from tests.programs.installation import set_up


class Prepared(msgspec.Struct):
    database: str
    key: str


def main() -> None:
    set_up()
    from django.conf import settings
    from django.core.management import call_command

    from .dataset import prepare

    call_command("migrate", verbosity=0)
    key = prepare(int(sys.argv[1]), time.time_ns() // 1_000_000)
    facts = Prepared(str(settings.DATABASES["default"]["NAME"]), key)
    sys.stdout.buffer.write(msgspec.json.encode(facts))


if __name__ == "__main__":
    main()
