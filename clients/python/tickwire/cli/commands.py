"""The commands, and how what goes wrong is said."""

from __future__ import annotations

import argparse
import csv
import json
import os
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Literal, cast

import httpx

from ..errors import ApiError, BrokenAnswer, StreamError, WalkInterrupted
from ..synchronous import Client
from ..types import ClosedSignal, NewSignal, Signal, SignalClosed
from .export import export

NUMBERS: tuple[Literal["open", "high", "low", "close", "volume"], ...] = (
    "open",
    "high",
    "low",
    "close",
    "volume",
)
CANDLE = ("time", *NUMBERS)

RESUME = (
    "Go on where the file ends, if the service has the file's last candle with exactly the same values, the "
    "last two are at least a timeframe apart, and --start, if given, leads to the file's first candle. "
    "Otherwise nothing is written."
)
# A place before all signals, where there is none yet.
BEGINNING = "after:0"


def main(arguments: list[str] | None = None) -> int:
    wanted = parser().parse_args(arguments)
    try:
        with Client(wanted.key, wanted.url) as client:
            wanted.run(client, wanted)
    except (ApiError, StreamError, BrokenAnswer, ValueError) as refusal:
        print(refusal, file=sys.stderr)
        return 1
    except httpx.TransportError as failure:
        # Of a walk it says more than a line of a terminal has to.
        why = failure.__cause__ if isinstance(failure, WalkInterrupted) else failure
        print(f"The service could not be reached at {client.url}/: {why}", file=sys.stderr)
        return 1
    except WalkInterrupted as interruption:
        print(f"The service could not be asked further: {interruption.__cause__}", file=sys.stderr)
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
        prog="tickwire", description="Quotes, candles and signals of a Tickwire service."
    )
    top.add_argument("--key", help="API key; else TICKWIRE_KEY.")
    top.add_argument("--url", help="Where the service is; else TICKWIRE_URL, else http://127.0.0.1:8000.")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    quote = commands.add_parser("quote", help="The current quote, once.")
    quote.add_argument("symbol", nargs="+")
    quote.set_defaults(run=show_quotes)

    watch = commands.add_parser("watch", help="Prices as they happen, until Ctrl-C.")
    watch.add_argument("symbol", nargs="+")
    watch.add_argument("--json", action="store_true", help="One JSON object a line.")
    watch.set_defaults(run=show_prices)

    signals = commands.add_parser("signals", help="The feed of signals.")
    signals.add_argument("--status", choices=("active", "closed", "all"), default="active")
    signals.add_argument("--symbol")
    signals.add_argument("--limit", type=int, default=20)
    signals.add_argument(
        "--follow", action="store_true", help="Then new ones as they come, and how they end."
    )
    signals.set_defaults(run=show_signals)

    add_candles(
        commands.add_parser("candles", help="Candles, oldest first: the last ones, or all of a span.")
    )
    return top


def add_candles(candles: argparse.ArgumentParser) -> None:
    candles.add_argument("symbol")
    candles.add_argument("timeframe", nargs="?", help="1m, 5m, 15m, 1h, 4h or 1d; else 1h.")
    candles.add_argument("--timeframe", dest="named_timeframe", help="The same, by name.")
    candles.add_argument("--csv", action="store_true")
    last = candles.add_argument_group("the last ones")
    last.add_argument("--bars", type=int, help="How many; else 100.")
    last.add_argument("--closed-only", action="store_true")
    span = candles.add_argument_group("all that is stored of a span, closed ones only")
    span.add_argument("--start", type=at, help="The first to include: 2026-11-01 or 2026-11-01T12:00 (UTC).")
    span.add_argument("--end", type=at, help="The first to leave out; else now.")
    span.add_argument(
        "--output", type=Path, metavar="FILE", help="Write CSV into a file, with a bar on a terminal."
    )
    span.add_argument("--resume", action="store_true", help=RESUME)
    candles.set_defaults(run=show_candles)


def at(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"{text} is not a date: write 2026-11-01 or 2026-11-01T12:00Z"
        ) from None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def show_quotes(client: Client, wanted: argparse.Namespace) -> None:
    for symbol in wanted.symbol:
        quote = client.quote(symbol)
        bid, ask, spread = (plain(quote[name]) for name in ("bid", "ask", "spread"))
        prices = f"{bid} / {ask}  spread {spread}"
        say(f"{quote['symbol']:10} {prices}  {quote['timestamp']}")


def show_prices(client: Client, wanted: argparse.Namespace) -> None:
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
        raise ValueError("--resume goes on where a file ends: name it with --output.")
    if wanted.start or wanted.end or wanted.output:
        if wanted.bars is not None:
            raise ValueError("--bars counts back from now: leave it out with --start, --end or --output.")
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


def as_json(frame: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{json.dumps(name)}: {plain(value)}" for name, value in frame.items()) + "}"


def plain(value: object) -> str:
    """As JSON, with numbers in full: 0.00003 and not 3e-05."""
    text = json.dumps(value)
    return f"{Decimal(text):f}" if isinstance(value, float) and "e" in text else text


def say(line: str) -> None:
    # At once, also into a pipe: who follows wants to see it now.
    print(line, flush=True)
