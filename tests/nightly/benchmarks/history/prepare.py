"""`python -m tests.nightly.benchmarks.history.prepare BARS CLOSING` fills an installation with minutes of
EURUSD, and a recording whose ticks close as many more; prints a key whose window nobody uses up."""

from __future__ import annotations

import sys
from pathlib import Path

from core.times import MINUTE_MS
from tests.programs.installation import set_up

START_MS = 1_514_764_800_000
"""2018-01-01, so that all of a million minutes are over."""


def main() -> None:
    set_up()
    from django.conf import settings
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    bars, closing = map(int, sys.argv[1:])
    sys.stdout.write(fill(bars, closing, Path(settings.REPLAY_DIR)))


def fill(bars: int, closing: int, folder: Path) -> str:
    import msgspec

    from market.engine.files.format import encode
    from market.prices.records import Tick
    from market.store import candle_rows, checkpoints
    from tests.factories import make_account, make_instrument, make_key, make_tier
    from tests.nightly.benchmarks.rest.dataset import candle

    instrument = make_instrument("EURUSD", source="replay")
    minutes = (candle(number, START_MS + number * MINUTE_MS) for number in range(bars))
    candle_rows.write_candles(
        (instrument.pk, "1m", msgspec.structs.replace(minute, source="replay"), "bid") for minute in minutes
    )
    if closing:
        # The last one is closed by the clock.
        times = (START_MS + (bars + number) * MINUTE_MS for number in range(closing))
        ticks = [Tick("EURUSD", 1.08 + at_ms // MINUTE_MS % 97 / 10_000, 1.1, at_ms, 1.0) for at_ms in times]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "EURUSD.jsonl").write_bytes(encode(ticks))
    else:
        last_ms = START_MS + bars * MINUTE_MS
        checkpoints.write_quote(instrument.pk, Tick("EURUSD", 1.0841, 1.08424, last_ms), "replay")
    return make_key(make_account(tier=make_tier("boundless", requests_per_minute=1_000_000_000)))


if __name__ == "__main__":
    main()
