"""`python -m tests.nightly.benchmarks.news_feed`: how long one client waits for the news, on both databases.
Ends with 1 when half of the answers to a question take longer than the floor. With `ask` it measures the
database that its environment names."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from statistics import quantiles
from typing import TYPE_CHECKING

import msgspec

from tests.nightly.benchmarks.processes import measured
from tests.nightly.benchmarks.tables import aligned, say
from tests.nightly.figures import note
from tests.programs.installation import set_up
from tests.programs.services import database_url

if TYPE_CHECKING:
    from news.models import NewsItem
    from tests.client import Api

ALL = "expand=id,url,source,summary,symbols,model"
# Gold and crypto are rare and old: the hard case for a feed of several categories.
QUESTIONS = {
    "20 items": "",
    "20, all expanded": ALL,
    "20 of gold": "category=gold",
    "20 of gold and crypto, all expanded": f"category=gold,crypto&{ALL}",
    "20 of three categories": "category=forex,gold,macro",
    "50, symbols": "limit=50&expand=symbols",
    "500 items": "limit=500",
}
WARM_UP, ASKED = 20, 300
RARE_PART = 100
ROWS, MOST_MS = 100_000, 5.0
BATCH = 2_000
Waited = dict[str, tuple[float, float]]
"""Milliseconds at p50 and p99, by question."""


def main() -> int:
    say(f"Preparing {ROWS:,} news items on each database …\n")
    waited = {"SQLite": measured(Waited, "news_feed", "ask", NEWS_POLLING="0")}
    with database_url() as url:
        waited["PostgreSQL"] = measured(Waited, "news_feed", "ask", NEWS_POLLING="0", DATABASE_URL=url)
    rows = [["ms", *(f"{database} {figure}" for database in waited for figure in ("p50", "p99"))]]
    is_held = True
    for name in QUESTIONS:
        rows.append([name, *(f"{ms:.2f}" for of in waited.values() for ms in of[name])])
        for database, of in waited.items():
            p50_ms, held = of[name][0], of[name][0] < MOST_MS
            note(f"{name}, {database}, p50", f"< {MOST_MS:g} ms", f"{p50_ms:.2f} ms", held=held)
            is_held &= held
    say(f"{aligned(rows)}\np50 below {MOST_MS:g} ms everywhere: {'yes' if is_held else 'no'}\n")
    return int(not is_held)


def ask_for_all() -> None:
    set_up()
    from django.core.management import call_command

    from tests.client import Api, Server
    from tests.factories import make_account, make_key, make_tier

    call_command("migrate", verbosity=0)
    fill()
    key = make_key(make_account(tier=make_tier("boundless", requests_per_minute=1_000_000_000)))
    with Server() as server, Api(server, key) as api:
        waited = {name: wait(api, f"/api/news?{query}") for name, query in QUESTIONS.items()}
    sys.stdout.buffer.write(msgspec.json.encode(waited))


def wait(api: Api, path: str) -> tuple[float, float]:
    times = [timed(api, path) for _ in range(WARM_UP + ASKED)][WARM_UP:]
    percentiles = quantiles(times, n=100)
    return percentiles[49], percentiles[98]


def timed(api: Api, path: str) -> float:
    started_at = time.perf_counter()
    assert api.ask(path).status_code == 200
    return (time.perf_counter() - started_at) * 1000


def fill() -> None:
    from django.db import connection

    from news.models import NewsItem
    from tests.factories import make_instrument

    instruments = [make_instrument(symbol).pk for symbol in ("EURUSD", "XAUUSD", "BTCUSD")]
    items = NewsItem.objects.bulk_create(news(), batch_size=BATCH)
    through = NewsItem.symbols.through
    through.objects.bulk_create(
        (
            through(newsitem_id=item.pk, instrument_id=instruments[(number + more) % 3])
            for number, item in enumerate(items)
            for more in range(number % 3)
        ),
        batch_size=BATCH,
    )
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def news() -> Iterator[NewsItem]:
    from news.models import NewsItem
    from tests.factories import NOON

    common, rare = ("forex", "macro"), ("gold", "crypto")
    for number in range(ROWS):
        yield NewsItem(
            title=f"Dollar slips as yields ease for the {number}th time this year",
            summary="Traders point at the usual suspects." * 3,
            category=(rare if number >= ROWS - ROWS // RARE_PART else common)[number % 2],
            status="published",
            sentiment_score=(number % 201 - 100) / 100,
            model="test",
            published_at=NOON - timedelta(seconds=number),
        )


if __name__ == "__main__":
    if sys.argv[1:]:
        ask_for_all()
    else:
        sys.exit(main())
