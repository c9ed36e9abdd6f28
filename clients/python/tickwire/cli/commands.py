"""The commands, and how they report errors."""

from __future__ import annotations

import argparse
import csv
import os
import sys
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Literal, cast

from ..calls import KEY, LOCAL, URL, USER_AGENT
from ..errors import ApiError, ServiceUnreachable, TickwireError, WalkInterrupted
from ..pages import read_moment
from ..synchronous import Client
from ..types import ClosedSignal, NewSignal, Signal, SignalClosed
from .export import export
from .feeds import BEGINNING, add_feeds
from .output import as_json, plain, say

NUMBERS: tuple[Literal["open", "high", "low", "close", "volume"], ...] = (
    "open",
    "high",
    "low",
    "close",
    "volume",
)
CANDLE = ("time", *NUMBERS)

RESUME = (
    "Continue where the file ends, if the service has the file's last candle with exactly the same values, "
    "the last two are at least a timeframe apart, and --start, if given, leads to the file's first candle. "
    "Otherwise nothing is written."
)


def main(arguments: list[str] | None = None) -> int:
    wanted = parser().parse_args(arguments)
    try:
        with Client(wanted.key, wanted.url) as client:
            wanted.run(client, wanted)
    except WalkInterrupted as interruption:
        # The cursor in its message is of no use here: --resume continues without one.
        is_first = isinstance(interruption, ServiceUnreachable)
        why = interruption if is_first else f"The service stopped answering: {interruption.__cause__}"
        print(why, file=sys.stderr)
        return 1
    except ApiError as error:
        # A key of one service is unknown to every other.
        is_unknown = error.status == 401
        where = f" It was sent to {client.url}; {URL} or --url names another service." if is_unknown else ""
        print(f"{error}{where}", file=sys.stderr)
        return 1
    except (TickwireError, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read has enough, as `head` does; the interpreter must not complain of it at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as failure:
        print(f"{failure.filename or 'The output'} could not be written: {failure.strerror}", file=sys.stderr)
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(
        prog="tickwire",
        description="A Tickwire service at the command line.",
    )
    top.add_argument("--version", action="version", version=f"tickwire {USER_AGENT.rpartition('/')[2]}")
    top.add_argument("--key", help=f"Your API key. By default, {KEY} of the environment.")
    top.add_argument(
        "--url",
        help=f"The address of the service, such as https://api.example.com. By default, {URL} of the "
        f"environment or, if that is not set, {LOCAL}.",
    )
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    quote = commands.add_parser("quote", help="The current quote, once.")
    quote.add_argument("symbol", nargs="+", help="One or more instruments, such as EURUSD.")
    quote.set_defaults(run=show_quotes)

    watch = commands.add_parser("watch", help="Prices as they happen, until Ctrl-C.")
    watch.add_argument("symbol", nargs="+", help="One or more instruments, such as EURUSD.")
    watch.add_argument("--json", action="store_true", help="One JSON object per line.")
    watch.set_defaults(run=show_prices)

    signals = commands.add_parser("signals", help="The feed of signals.")
    signals.add_argument(
        "--status", choices=("active", "closed", "all"), default="active", help="By default, active."
    )
    signals.add_argument("--symbol", help="Only signals on this instrument.")
    signals.add_argument("--limit", type=int, default=20, help="How many to show at first. By default, 20.")
    signals.add_argument(
        "--follow", action="store_true", help="Then show new ones as they are published, and how they end."
    )
    signals.set_defaults(run=show_signals)

    add_candles(
        commands.add_parser("candles", help="Candles, oldest first: the latest ones, or all of a span.")
    )
    add_feeds(commands, at)
    return top


def add_candles(candles: argparse.ArgumentParser) -> None:
    candles.add_argument("symbol", help="The instrument, such as EURUSD.")
    candles.add_argument("timeframe", nargs="?", help="1m, 5m, 15m, 1h, 4h or 1d. By default, 1h.")
    candles.add_argument("--timeframe", dest="named_timeframe", help="The same, as an option.")
    candles.add_argument("--csv", action="store_true", help="As CSV, with a header row.")
    last = candles.add_argument_group("the latest candles")
    last.add_argument("--bars", type=int, help="How many. By default, 100.")
    last.add_argument(
        "--closed-only", action="store_true", help="Leave out the candle that is still forming."
    )
    span = candles.add_argument_group("all closed candles of a span")
    span.add_argument(
        "--start",
        type=at,
        help="The first time to include: 2026-11-01 or 2026-11-01T12:00, in UTC unless a zone is given.",
    )
    span.add_argument("--end", type=at, help="The end, which is excluded. By default, now.")
    span.add_argument(
        "--output", type=Path, metavar="FILE", help="Write CSV to a file; a terminal shows the progress."
    )
    span.add_argument("--resume", action="store_true", help=RESUME)
    candles.set_defaults(run=show_candles)


def at(text: str) -> datetime:
    try:
        return read_moment(text)
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"{text} is not a time: write 2026-11-01 or 2026-11-01T12:00, which are UTC, or add a zone"
        ) from None


def show_quotes(client: Client, wanted: argparse.Namespace) -> None:
    for symbol in wanted.symbol:
        quote = client.quote(symbol)
        bid, ask, spread = (plain(quote[name]) for name in ("bid", "ask", "spread"))
        prices = f"{bid} / {ask}  spread {spread}"
        say(f"{quote['symbol']:10} {prices}  {quote['timestamp']}")


def show_prices(client: Client, wanted: argparse.Namespace) -> None:
    # A stream waits for a service that is away. Whoever has just typed its address wants to hear of it.
    client.limits()
    for tick in client.watch(*wanted.symbol):
        if wanted.json:
            say(as_json(tick))
        else:
            say(f"{tick['symbol']:10} {plain(tick['bid'])} / {plain(tick['ask'])}")


def show_signals(client: Client, wanted: argparse.Namespace) -> None:
    start = newest_place(client) if wanted.follow else None
    feed = client.signals(status=wanted.status, symbol=wanted.symbol, limit=wanted.limit)
    for signal in reversed(feed["items"]):
        say(describe(signal))
    if wanted.follow:
        # From the newest that was shown, so that none falls between the two; or from what was newest before.
        since = feed["items"][0]["id"] if feed["items"] else start
        for frame in client.follow_signals(*filter(None, [wanted.symbol]), since=since):
            say(describe(frame))


def newest_place(client: Client) -> str:
    newest = client.signals(status="all", limit=1)["items"]
    return str(newest[0]["id"]) if newest else BEGINNING


def describe(signal: Signal | NewSignal | SignalClosed) -> str:
    terms = f"{signal['direction']:4} {signal['symbol']:10} at {signal['entry']}"
    levels = f"stop {signal['stop_loss']}, target {signal['take_profit']}, by {signal['user']}"
    if "closed_at" in signal:
        # mypy does not tell from it that the signal is no active one.
        closed = cast("ClosedSignal | SignalClosed", signal)
        result = f"{closed['close_reason']}, {closed['pnl']:+} pips, {closed['pnl_r']:+} R"
        return f"{closed['closed_at']}  {terms}, {levels}: {result}"
    return f"{signal['timestamp']}  {terms}, {levels}"


def show_candles(client: Client, wanted: argparse.Namespace) -> None:
    timeframe = wanted.timeframe or wanted.named_timeframe or "1h"
    if wanted.resume and wanted.output is None:
        raise ValueError("--resume continues where a file ends: name that file with --output.")
    if wanted.start or wanted.end or wanted.output:
        if wanted.bars is not None:
            raise ValueError(
                "--bars counts back from now: it cannot be used with --start, --end or --output."
            )
        export(client, wanted, timeframe)
    else:
        show_last_candles(client, wanted, timeframe)


def show_last_candles(client: Client, wanted: argparse.Namespace, timeframe: str) -> None:
    bars = 100 if wanted.bars is None else wanted.bars
    market = client.market(wanted.symbol, timeframe=timeframe, bars=bars, closed_only=wanted.closed_only)
    rows: Iterable[list[str]] = (
        [candle["time"], *(plain(candle[name]) for name in NUMBERS)] for candle in market["ohlcv"]
    )
    if wanted.csv:
        table = csv.writer(sys.stdout)
        table.writerow(CANDLE)
        table.writerows(rows)
        return
    for row in rows:
        say("  ".join(row))
