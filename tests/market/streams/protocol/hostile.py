"""Messages that a stream must answer with `invalid_message` and survive."""

from __future__ import annotations

import json
from typing import Any

DEEP = "[" * 10_000 + "]" * 10_000


def subscribe(**fields: Any) -> str:
    return json.dumps({"action": "subscribe", "symbols": ["EURUSD"], **fields})


NOT_JSON = {
    "empty": b"",
    "blank": b"  ",
    "no json": b"subscribe EURUSD",
    "cut off": b'{"action":"ping"',
    "two messages": b'{"action":"ping"}{"action":"ping"}',
    "byte order mark": b'\xef\xbb\xbf{"action":"ping"}',
    "utf-16": '{"action":"ping"}'.encode("utf-16"),
    "not utf-8": b'{"action":"ping","more":"\xff"}',
    "raw NUL": b'{"action":"ping","id":"\x00"}',
    "NaN": b'{"action":"ping","id":NaN}',
    "infinity": b'{"action":"ping","more":-Infinity}',
    "single quotes": b"{'action':'ping'}",
    "comment": b'{"action":"ping"} // hello',
    "comma at the end": b'{"action":"ping",}',
    "half a surrogate": b'{"action":"ping","id":"\\ud800"}',
    "half a surrogate in a symbol": b'{"action":"subscribe","symbols":["\\udc00"]}',
    "deep": DEEP.encode(),
    "deep in a field nobody knows": b'{"action":"ping","more":%b}' % DEEP.encode(),
    "deep in symbols": b'{"action":"subscribe","symbols":%b}' % DEEP.encode(),
}
NO_OBJECT = [
    "[]",
    '[{"action":"ping"}]',
    "5",
    "-0",
    "1e999",
    '"ping"',
    "null",
    "true",
    "{}",
    '{"Action":"ping"}',
]

# By the field that the refusal names.
WRONG_VALUES: dict[str, list[Any]] = {
    "action": ["", "SUBSCRIBE", "auth", None, 5, ["subscribe"], {}],
    "symbols": [
        *([], "EURUSD", {}, 5, True, [5], [None], [["EURUSD"]], ["EURUSD", 5], ["EURUSD"] * 201),
        *([f"S{number}" for number in range(count)] for count in (201, 500, 10_000)),
    ],
    "api_key": [5, ["tw_live_"], {}, True],
    "id": [1.0, True, [], {}, "x" * 65, 2**63, 2**64, -(2**63) - 1, 10**4000],
    "features": ["seq", [5], ["SEQ"], ["seq", "more"], {}],
    "takeover": [1, "true", []],
    "resume": [
        *("e1", [], {}, {"epoch": "e1"}, {"positions": {}}, {"epoch": 1, "positions": {}}),
        *({"epoch": "e1", "positions": []}, {"epoch": "e1", "positions": None}),
        {"epoch": "e1", "positions": {"EURUSD": 7, "eurusd": 8}},
        *({"epoch": "e1", "positions": {"EURUSD": seq}} for seq in (-1, 2**63, 2**64, 1.5, "7", None)),
    ],
}
WRONG_CANDLES_VALUES: dict[str, list[Any]] = {
    "timeframes": [[], "1m", ["2m"], ["1m", "1M"], ["1m", 5], {}, 1],
    "events": [["signal.closed"], ["forming", "closed"], "forming"],
    "resume": [{"epoch": "e1", "positions": {key: 1}} for key in ("EURUSD", "EURUSD/", "EURUSD/2m", "/")],
}
WRONG_SIGNALS_VALUES: dict[str, list[Any]] = {
    "since": [5, [], "x" * 65],
    "events": [["signal.opened"], "signal.closed", [1]],
}
TWICE = [
    ("action", '{"action":"ping","action":"list"}'),
    ("id", '{"action":"ping","id":1,"id":2}'),
    ("symbols", '{"action":"subscribe","symbols":["EURUSD"],"symbols":["XAUUSD"]}'),
]


def each(wrong: dict[str, list[Any]]) -> list[tuple[str, str]]:
    return [(field, subscribe(**{field: value})) for field, values in wrong.items() for value in values]


WRONG_FIELDS = [*each(WRONG_VALUES), *TWICE, ("id", '{"action":"ping","id":1e3}')]

# Only on some streams.
WRONG_ON: list[tuple[str, str, str]] = [
    ("market", "symbols", '{"action":"subscribe"}'),
    ("market", "symbols", subscribe(symbols=["*"])),
    ("market", "symbols", subscribe(symbols=["EURUSD", "*"])),
    ("market", "symbols", '{"action":"unsubscribe","symbols":["*"]}'),
    ("market", "since", subscribe(since="6f1c2f5e-8f0b-4a53-9d0e-2b8f6f6f9a01")),
    ("orderflow", "since", subscribe(since="6f1c2f5e-8f0b-4a53-9d0e-2b8f6f6f9a01")),
    ("market", "events", subscribe(events=["signal.closed"])),
    ("orderflow", "events", subscribe(events=["signal.closed"])),
    *(("candles", "symbols", text) for text in ('{"action":"subscribe"}', subscribe(symbols=["*"]))),
    ("candles", "since", subscribe(since="6f1c2f5e-8f0b-4a53-9d0e-2b8f6f6f9a01")),
    *((name, "timeframes", subscribe(timeframes=["1m"])) for name in ("market", "orderflow", "signals")),
    ("candles", "timeframes", '{"action":"unsubscribe","timeframes":["1m"]}'),
    ("candles", "timeframes", '{"action":"unsubscribe","symbols":["EURUSD"],"timeframes":["1m"]}'),
    ("candles", "symbols", '{"action":"unsubscribe","symbols":["XAUUSD","EURUSD/1m"]}'),
    ("news", "categories", '{"action":"unsubscribe","categories":["gold"]}'),
    ("signals", "events", subscribe(events=["forming"])),
    *(("candles", field, text) for field, text in each(WRONG_CANDLES_VALUES)),
    ("signals", "resume", subscribe(resume={"epoch": "e1", "positions": {}})),
    *(("signals", field, text) for field, text in each(WRONG_SIGNALS_VALUES)),
]
