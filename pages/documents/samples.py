"""Code to copy, in tabs: shell, Python and JavaScript, with this host and an open symbol filled in."""

import json
from collections.abc import Callable
from typing import Any, NamedTuple
from urllib.parse import urlencode

from django.http import HttpRequest
from django.template.loader import render_to_string
from django.utils.safestring import SafeString

from instruments.catalogue import catalogue
from instruments.facts import TEST_SYMBOL
from market import runtime as market
from market.streams.protocol.messages import MARKET, TOGETHER

from .packages import tarball_name, wheel_name
from .reference import Operation
from .rendering import highlighted
from .stream_reference import DescribedStream, scheme_of

# Each operation as a request to copy: with curl, and with the official clients.
LANGUAGES = {
    "shell": ("Shell", "bash"),
    "python": ("Python", "python"),
    "javascript": ("JavaScript", "javascript"),
}


WIDEST = 64
"""Characters of a line that fit beside the description of an endpoint."""


class Call(NamedTuple):
    python: str
    javascript: str
    query: dict[str, str] = {}
    """The address of the same request."""


def listed(python: str, javascript: str, **query: str) -> Call:
    one_line = f"console.log(await {javascript});"
    is_short = "\n" not in javascript and len(one_line) <= WIDEST
    return Call(
        f"print({python})",
        one_line if is_short else f"const found = await {javascript};\nconsole.log(found);",
        query,
    )


CALLS = {
    "listSymbols": listed(
        'tickwire.symbols(expand=["state"])',
        'tickwire.get("/api/symbols", {}, {\n  expand: ["state"],\n})',
        expand="state",
    ),
    "getMarket": listed(
        'tickwire.market("{symbol}", timeframe="5m", bars=3)',
        'tickwire.market("{symbol}", {\n  timeframe: "5m",\n  bars: 3,\n})',
        timeframe="5m",
        bars="3",
    ),
    "getQuote": listed('tickwire.quote("{symbol}")', 'tickwire.quote("{symbol}")'),
    "getHistory": Call(
        'for candle in tickwire.history("{symbol}", "5m"):\n        print(candle["time"], candle["close"])',
        'for await (const candle of tickwire.history("{symbol}", "5m")) {\n'
        "  console.log(candle.time, candle.close);\n}",
        {"timeframe": "5m"},
    ),
    "getTicks": Call(
        'for tick in tickwire.ticks("{symbol}"):\n        print(tick["timestamp"], tick["bid"], tick["seq"])',
        'const page = await tickwire.get(\n  "/api/market/{symbol}/ticks",\n  { symbol: "{symbol}" },\n);\n'
        "console.log(page.items);",
    ),
    "listQuotes": listed(
        'tickwire.quotes(["{symbol}"])', 'tickwire.quotes(["{symbol}"])', symbols="{symbol}"
    ),
    "getOrderFlow": listed(
        'tickwire.order_flow_buckets("{symbol}", limit=5)',
        'tickwire.orderFlowBuckets("{symbol}", {\n  limit: 5,\n})',
        limit="5",
    ),
    "listSignals": listed(
        'tickwire.signals(status="all", limit=5)',
        'tickwire.signals({ status: "all", limit: 5 })',
        status="all",
        limit="5",
    ),
    "listLedger": listed(
        "tickwire.ledger(limit=5)",
        'tickwire.get("/api/signals/ledger", {}, {\n  limit: 5,\n})',
        limit="5",
    ),
    "getSignal": listed('tickwire.signal("{id}")', 'tickwire.signal(\n  "{id}",\n)'),
    "getSignalProof": listed(
        'tickwire.proof("{id}")', 'tickwire.get("/api/signals/{id}/proof", {\n  id: "{id}",\n})'
    ),
    "getPublisher": listed(
        'tickwire.publisher("{user}")',
        'tickwire.get("/api/publishers/{user}", {\n  user: "{user}",\n})',
    ),
    "listNews": listed("tickwire.news(limit=5)", "tickwire.news({ limit: 5 })", limit="5"),
    "getNewsCalibration": listed("tickwire.calibration()", 'tickwire.get("/api/news/calibration", {})'),
    "getAnalysis": listed(
        'tickwire.analysis("{symbol}")',
        'tickwire.get("/api/analysis/{symbol}", {\n  symbol: "{symbol}",\n})',
    ),
    "listArchive": Call(
        'for file in tickwire.archive(kind="ticks", symbol="{symbol}"):\n'
        '        print(file["path"], file["bytes"])',
        'const files = { kind: "ticks", symbol: "{symbol}" };\n'
        'console.log(await tickwire.get("/api/archive", {}, files));',
        {"kind": "ticks", "symbol": "{symbol}"},
    ),
    "getArchiveFile": Call(
        'tickwire.download("{path}", ".")',
        # The client reads only JSON, not files.
        'const name = "{path}";\n'
        "const file = await fetch(`${tickwire.url}/api/archive/${name}`, {\n"
        '  headers: { "X-API-Key": process.env.TICKWIRE_KEY },\n});\n'
        "if (!file.ok) throw new Error(await file.text());\n"
        "console.log((await file.arrayBuffer()).byteLength);",
    ),
    "getSession": listed("tickwire.session()", 'tickwire.get("/api/session", {})'),
    "getLimits": listed("tickwire.limits()", 'tickwire.get("/api/limits", {})'),
}
PYTHON_REQUEST = """import os
from tickwire import Client

url = "{base}"
with Client(os.environ["TICKWIRE_KEY"], url) as tickwire:
    {call}
"""
JAVASCRIPT_REQUEST = """import {{ Tickwire }} from "tickwire";

const tickwire = new Tickwire({{
  apiKey: process.env.TICKWIRE_KEY,
  url: "{base}",
}});
{call}
"""


def requests(operation: Operation, base: str, known: dict[str, str]) -> dict[str, str]:
    """By language. `known` has values that this service has answers for; the rest are examples."""
    call = CALLS[operation.name]
    fill = filler(operation, known)
    # The client's own call names the template of the path, so that alone keeps its braces.
    javascript = call.javascript.replace(f'"{operation.path}"', "\0")
    return {
        "shell": curl(operation, call, base, fill),
        "python": PYTHON_REQUEST.format(base=base, call=fill(call.python)),
        "javascript": JAVASCRIPT_REQUEST.format(
            base=base, call=fill(javascript).replace("\0", f'"{operation.path}"')
        ),
    }


def filler(operation: Operation, known: dict[str, str]) -> Callable[[str], str]:
    values = {each.name: each.example for each in operation.parameters if each.example} | known

    def fill(text: str) -> str:
        for name, value in values.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    return fill


def curl(operation: Operation, call: Call, base: str, fill: Callable[[str], str]) -> str:
    query = urlencode({name: fill(value) for name, value in call.query.items()}, safe=",")
    address = base + fill(operation.path) + (f"?{query}" if query else "")
    saved = " --fail -O" if operation.name == "getArchiveFile" else ""
    return f'curl{saved} -H "X-API-Key: $TICKWIRE_KEY" \\\n  "{address}"'


WITHOUT_MARKET = "BTCUSD"
INSTALL, SHELL = "install", LANGUAGES["shell"][1]


class CodeSample(NamedTuple):
    language: str
    title: str
    html: SafeString
    id: str


class Tabs(NamedTuple):
    """The same in each language; the one that a reader has chosen is shown on every page."""

    id: str
    label: str
    samples: list[CodeSample]


class Filled(NamedTuple):
    """The values in the samples of a page."""

    base: str
    ws: str
    symbol: str


def filled(request: HttpRequest) -> Filled:
    host = request.get_host()
    return Filled(f"{request.scheme}://{host}", f"{scheme_of(request)}://{host}", open_symbol())


def open_symbol() -> str:
    """One that answers now: its market is open, it has a quote, and it is not meant for tests."""
    offered = sorted(catalogue.offered(), key=lambda facts: facts.symbol)
    best = min(
        offered,
        key=lambda facts: (
            market.state(facts) != "open",
            market.quote(facts.symbol) is None,
            facts.symbol == TEST_SYMBOL,
        ),
        default=None,
    )
    return best.symbol if best else WITHOUT_MARKET


def from_texts(name: str, label: str, texts: dict[str, str]) -> Tabs:
    """Programs are installed by commands, whatever their language."""
    written_in = SHELL if name == INSTALL else ""
    samples = [
        CodeSample(
            language, title, highlighted(texts[language].strip(), written_in or lexer), f"{name}-{language}"
        )
        for language, (title, lexer) in LANGUAGES.items()
    ]
    return Tabs(name, label, samples)


def from_templates(folder: str, label: str, values: Filled) -> Tabs:
    """The files templates/docs/samples/FOLDER/LANGUAGE.txt."""
    words = values._asdict() | {"wheel": wheel_name(), "tarball": tarball_name()}
    texts = {
        language: str(render_to_string(f"docs/samples/{folder}/{language}.txt", words))
        for language in LANGUAGES
    }
    return from_texts(folder, label, texts)


def of_operation(operation: Operation, values: Filled, known: dict[str, str]) -> Tabs:
    return from_texts("request", "Request", requests(operation, values.base, known))


def of_stream(stream: DescribedStream, values: Filled) -> Tabs:
    if stream.name == TOGETHER:
        return from_templates("one-socket", "Subscribe", values)
    return from_texts("subscribe", "Subscribe", subscriptions(stream, values))


class Following(NamedTuple):
    """How the official clients follow a stream."""

    python: str
    javascript: str
    shell: str = ""
    """The client's own command, where it has one."""


FOLLOWING = {
    "market": Following('watch("{symbol}")', 'watch(["{symbol}"])', "watch {symbol}"),
    "orderflow": Following('order_flow("{symbol}")', 'orderFlow(["{symbol}"])'),
    "candles": Following(
        'follow_candles("{symbol}")',
        'followCandles(["{symbol}"])',
    ),
    "signals": Following("follow_signals()", "followSignals()", "signals --follow"),
    "news": Following("follow_news()", "followNews()"),
}
PYTHON = """import os
from tickwire import Client

url = "{base}"
with Client(os.environ["TICKWIRE_KEY"], url) as tickwire:
    for frame in tickwire.{call}:
        print(frame)
"""
JAVASCRIPT = """import {{ Tickwire }} from "tickwire";

const tickwire = new Tickwire({{
  apiKey: process.env.TICKWIRE_KEY,
  url: "{base}",
}});
for await (const frame of tickwire.{call}) {{
  console.log(frame);
}}
"""
COMMAND = """tickwire --url {base} \\
  --key "$TICKWIRE_KEY" {call}"""
# It needs no installation with Node; without -w it would not wait for messages.
WSCAT = """npx wscat -c {ws}{path} \\
  -H "X-API-Key: $TICKWIRE_KEY" -w 60 \\
  -x '{wanted}'"""


def wanted(name: str, symbol: str) -> dict[str, Any]:
    """What a client sends to subscribe to a stream, apart from its key."""
    if name in ("signals", "news"):
        return {"action": "subscribe"}
    timeframes = {"timeframes": ["1m"]} if name == "candles" else {}
    return {"action": "subscribe", **addressed(name), "symbols": [symbol], **timeframes}


def addressed(name: str) -> dict[str, str]:
    """What each message on this path says besides."""
    return {"stream": MARKET.name} if name == TOGETHER else {}


def subscriptions(stream: DescribedStream, values: Filled) -> dict[str, str]:
    """By language."""
    call = FOLLOWING[stream.name]
    python, javascript, command = (each.replace("{symbol}", values.symbol) for each in call)
    message = spelled(wanted(stream.name, values.symbol))
    by_hand = WSCAT.format(wanted=message, ws=values.ws, path=stream.path)
    return {
        "shell": COMMAND.format(base=values.base, call=command) if command else by_hand,
        "python": PYTHON.format(base=values.base, call=python),
        "javascript": JAVASCRIPT.format(base=values.base, call=javascript),
    }


def console(name: str, symbol: str) -> dict[str, Any]:
    """The messages that the console of a stream's page offers. KEY stands for the key."""
    key = {"api_key": "KEY"}
    full = wanted(name, symbol) | key
    features = {} if name in ("signals", "news") else {"features": ["seq", "snapshot"]}
    named = {"symbols": [symbol]}
    more = (
        [("Signals too", spelled({"action": "subscribe", "stream": "signals"}))] if name == TOGETHER else []
    )
    return {
        "wanted": spelled(full | features),
        "examples": [
            ("Subscribe", spelled(full)),
            *more,
            ("List", spelled({"action": "list", **addressed(name), "id": 1})),
            ("Ping", spelled({"action": "ping", "id": 2})),
            ("Unsubscribe", spelled({"action": "unsubscribe", **addressed(name), **named})),
            (
                "An invalid message",
                spelled({"action": "subscribe", **addressed(name), "symbols": symbol, **key}),
            ),
        ],
    }


def spelled(message: dict[str, Any]) -> str:
    return json.dumps(message)
