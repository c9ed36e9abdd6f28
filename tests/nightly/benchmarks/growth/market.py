"""`INSTRUMENTS`: fills the database of VAR_DIR with so many, each with a quote and its 500 last candles of
every timeframe, and prints a key."""

from __future__ import annotations

import sys
import time

from tests.programs.installation import set_up


def symbol(number: int) -> str:
    return f"SYM{number:04}"


def main() -> None:
    set_up()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    sys.stdout.write(fill(int(sys.argv[1]), time.time_ns() // 1_000_000))


def fill(many: int, now_ms: int) -> str:
    from instruments.models import Instrument
    from market.prices.history import KEPT
    from market.prices.records import Tick
    from market.store import candle_rows, checkpoints
    from tests.factories import make_account, make_instruments, make_key, make_tier
    from tests.nightly.benchmarks.rest.dataset import candles

    rows: list[Instrument] = make_instruments([symbol(number) for number in range(many)], source="push")
    candle_rows.write_candles(candles(rows[0].pk, now_ms, KEPT))
    repeat_candles(rows[0].pk)
    quotes = (
        (row.pk, checkpoints.Checkpoint(Tick(row.symbol, 1.0841, 1.08424, now_ms), None, source="push"))
        for row in rows
    )
    checkpoints.write_quotes(quotes)
    return make_key(make_account(tier=make_tier("boundless", requests_per_minute=1_000_000_000)))


def repeat_candles(instrument_id: int) -> None:
    """Those of one instrument for all others, by the database itself: there may be fifteen millions."""
    from django.db import connection

    from market.store.candle_rows import KEY, TABLE, VALUES

    same = [name for name in (*KEY, *VALUES) if name != "instrument_id"]
    own = ", ".join(f"candle.{name}" for name in same)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {TABLE} (instrument_id, {', '.join(same)}) "  # noqa: S608 - names of our own
            f"SELECT instrument.id, {own} FROM instruments_instrument instrument CROSS JOIN "
            f"(SELECT * FROM {TABLE} WHERE instrument_id = %s) candle WHERE instrument.id <> %s",
            [instrument_id, instrument_id],
        )


if __name__ == "__main__":
    main()
