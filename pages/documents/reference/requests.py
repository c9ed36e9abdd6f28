"""Each operation as a request to copy: with curl, and with the official clients."""

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlencode

from .operations import Operation

LANGUAGES = {
    "shell": ("Shell", "bash"),
    "python": ("Python", "python"),
    "javascript": ("JavaScript", "javascript"),
}


WIDEST = 64
"""Characters of a line that stand beside the description of an endpoint without being scrolled."""


class Call(NamedTuple):
    python: str
    javascript: str
    query: dict[str, str] = {}
    """What the same request has in its address."""


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
        # A file is no JSON, which is what the client reads.
        'const name = "{path}";\n'
        "const file = await fetch(`${tickwire.url}/api/archive/${name}`, {\n"
        '  headers: { "X-API-Key": process.env.TICKWIRE_KEY },\n});\n'
        "if (!file.ok) throw new Error(await file.text());\n"
        "console.log((await file.arrayBuffer()).byteLength);",
    ),
    "getSession": listed("tickwire.session()", 'tickwire.get("/api/session", {})'),
    "getLimits": listed("tickwire.limits()", 'tickwire.get("/api/limits", {})'),
}
PYTHON = """import os
from tickwire import Client

url = "{base}"
with Client(os.environ["TICKWIRE_KEY"], url) as tickwire:
    {call}
"""
JAVASCRIPT = """import {{ Tickwire }} from "tickwire";

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
        "python": PYTHON.format(base=base, call=fill(call.python)),
        "javascript": JAVASCRIPT.format(
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
