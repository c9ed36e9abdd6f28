"""`[SYMBOLS]`: fills the database of VAR_DIR and DATABASE_URL, and prints a key with room for all sockets."""

from __future__ import annotations

import sys

from tests.programs.installation import set_up

SYMBOLS, STREAMS = 50, 100_000


def main() -> None:
    set_up()
    from django.core.management import call_command

    from tests.factories import make_account, make_instruments, make_key, make_tier

    call_command("migrate", verbosity=0)
    many = int(sys.argv[1]) if sys.argv[1:] else SYMBOLS
    # A volume is passed on as it is, so that a tick is known again by it.
    make_instruments([f"SYM{number:03}" for number in range(many)], source="push", volume_kind="traded")
    sys.stdout.write(make_key(make_account(tier=make_tier("crowd", streams=STREAMS))))


if __name__ == "__main__":
    main()
