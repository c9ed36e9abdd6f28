"""The commands for news, order flow, ticks, the archive and limits."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..pages import as_text
from ..synchronous import Client
from ..types import NewsItem, PublishedNews
from .output import as_json, plain, say

SYMBOL = "The instrument, such as EURUSD."
# A place before everything, where there is nothing yet.
BEGINNING = "after:0"
JSON = "One JSON object per line."


def add_feeds(commands: Any, at: Callable[[str], datetime]) -> None:
    """`at` reads a time."""

    def add_span(command: argparse.ArgumentParser) -> None:
        command.add_argument("--start", type=at, help="The first time to include, in UTC without a zone.")
        command.add_argument("--end", type=at, help="The end, which is excluded. By default, now.")

    news = commands.add_parser("news", help="The feed of news, oldest first.")
    news.add_argument("--category", action="append", default=[], help="Only this one; may be repeated.")
    news.add_argument("--limit", type=int, default=20, help="How many to show at first. By default, 20.")
    news.add_argument("--follow", action="store_true", help="Then show new ones as they enter the feed.")
    news.set_defaults(run=show_news)

    flow = commands.add_parser("orderflow", help="The volume bought and sold in each minute.")
    flow.add_argument("symbol", help=SYMBOL)
    flow.add_argument("--limit", type=int, default=20, help="How many minutes. By default, the newest 20.")
    flow.add_argument("--follow", action="store_true", help="Each tick and absorption as JSON, until Ctrl-C.")
    flow.set_defaults(run=show_order_flow)

    ticks = commands.add_parser("ticks", help="The ticks that the service keeps, oldest first.")
    ticks.add_argument("symbol", help=SYMBOL)
    add_span(ticks)
    ticks.add_argument("--json", action="store_true", help=JSON)
    ticks.set_defaults(run=show_ticks)

    archive = commands.add_parser("archive", help="The files of the archive.")
    archive.add_argument("--kind", choices=("ticks", "candles", "manifest"), help="Only files of this kind.")
    archive.add_argument("--symbol", help="Only files of this instrument.")
    add_span(archive)
    archive.add_argument(
        "--download", type=Path, metavar="FOLDER", help="Download them, and check their SHA-256."
    )
    archive.set_defaults(run=show_archive)

    limits = commands.add_parser("limits", help="What is left of your allowances.")
    limits.set_defaults(run=show_limits)


def show_news(client: Client, wanted: argparse.Namespace) -> None:
    items = client.news(category=wanted.category, limit=wanted.limit, expand=["id"])["items"]
    for item in reversed(items):
        say(describe(item))
    if wanted.follow:
        # From the newest that was shown, so that none falls between the two.
        since = items[0]["id"] if items else BEGINNING
        for published in client.follow_news(categories=wanted.category, since=since):
            say(describe(published))


def describe(item: NewsItem | PublishedNews) -> str:
    mood = f"{item['sentiment']} {item['sentiment_score']:+}"
    return f"{item['timestamp']}  {item['category']:6} {mood:14} {item['title']}"


def show_order_flow(client: Client, wanted: argparse.Namespace) -> None:
    if wanted.follow:
        # A stream waits for a service that is away, and this says that it is.
        client.limits()
        for frame in client.order_flow(wanted.symbol):
            say(as_json(frame))
        return
    for minute in client.order_flow_buckets(wanted.symbol, limit=wanted.limit)["items"]:
        volumes = (f"{name} {plain(value)}" for name, value in minute.items() if name != "time")
        say("  ".join([minute["time"], *volumes]))


def show_ticks(client: Client, wanted: argparse.Namespace) -> None:
    for tick in client.ticks(wanted.symbol, start=wanted.start, end=wanted.end):
        if wanted.json:
            say(as_json(tick))
        else:
            say(f"{tick['timestamp']}  {plain(tick['bid'])} / {plain(tick['ask'])}  {plain(tick['volume'])}")


def show_archive(client: Client, wanted: argparse.Namespace) -> None:
    files = client.archive(kind=wanted.kind, symbol=wanted.symbol, start=wanted.start, end=wanted.end)
    if wanted.download is not None:
        wanted.download.mkdir(parents=True, exist_ok=True)
    for file in files:
        if wanted.download is None:
            say(f"{file['path']}  {file['bytes']:,} bytes")
        else:
            say(str(client.download(file["path"], wanted.download)))


def show_limits(client: Client, wanted: argparse.Namespace) -> None:
    limits = client.limits()
    for name, window in (("requests", limits["requests"]), ("AI calls", limits["ai_calls"])):
        reset = as_text(datetime.fromtimestamp(window["reset"], UTC))
        say(f"{name}: {window['remaining']} of {window['limit']} left, more from {reset}")
    streams = limits["streams"]
    say(f"streams: {len(streams['open'])} of {streams['limit']} open")
    for stream in streams["open"]:
        say(f"  {stream['path']} for {stream['age_seconds']} s")
