"""The REST part of the specification and of the contract, as the OpenAPI document should tell it."""

from __future__ import annotations

from typing import Any

from instruments.views import EXPANSIONS

Json = dict[str, Any]

SYMBOL = "^ *[A-Za-z0-9][A-Za-z0-9._-]{0,19} *$"
MARKET, QUOTE = "/api/market/{symbol}", "/api/market/{symbol}/quote"
HISTORY = "/api/market/{symbol}/history"
SYMBOLS, SIGNALS, NEWS = "/api/symbols", "/api/signals", "/api/news"
ANALYSIS, CALIBRATION = "/api/analysis/{symbol}", "/api/news/calibration"
QUOTES, ORDER_FLOW = "/api/quotes", "/api/orderflow/{symbol}"
SESSION, LIMITS = "/api/session", "/api/limits"
ONE_SIGNAL = "/api/signals/{id}"
PROOF, LEDGER, PUBLISHER = "/api/signals/{id}/proof", "/api/signals/ledger", "/api/publishers/{user}"
ARCHIVE, ARCHIVE_FILE = "/api/archive", "/api/archive/{path}"
PATHS = [
    *(SYMBOLS, MARKET, QUOTE, HISTORY, SIGNALS, ONE_SIGNAL, PROOF, LEDGER, PUBLISHER, NEWS, CALIBRATION),
    *(ANALYSIS, ARCHIVE, ARCHIVE_FILE, SESSION, LIMITS, QUOTES, ORDER_FLOW),
]

PATH_SYMBOL = {"symbol": ("path", {"type": "string"})}
TIMEFRAMES = ["1m", "5m", "15m", "1h", "4h", "1d"]
CATEGORIES = ["forex", "gold", "crypto", "macro"]
NEWS_EXTRAS = ["id", "url", "source", "summary", "symbols", "model"]


def up_to_500(default: int) -> tuple[str, Json]:
    return "query", {"type": "integer", "minimum": 1, "maximum": 500, "default": default}


def one_of(words: list[str], default: str) -> tuple[str, Json]:
    return "query", {"type": "string", "enum": words, "default": default}


def list_of(words: list[str]) -> tuple[str, Json]:
    return "query", {"type": "array", "minItems": 1, "items": {"type": "string", "enum": words}}


def moment(*formats: str) -> tuple[str, Json]:
    texts = [{"type": "string", "format": each, "pattern": "^(19[7-9]|[2-9])"} for each in formats]
    return "query", {"oneOf": [*texts, {"type": "integer", "minimum": 0, "maximum": 253_402_300_799_999}]}


MOMENT = moment("date-time")
RANGE: dict[str, tuple[str, Json]] = {"start": MOMENT, "end": MOMENT, "cursor": ("query", {"type": "string"})}


PARAMETERS: dict[str, dict[str, tuple[str, Json]]] = {
    SYMBOLS: {"expand": list_of([*EXPANSIONS])},
    MARKET: {
        **PATH_SYMBOL,
        "timeframe": one_of(TIMEFRAMES, "1h"),
        "bars": up_to_500(100),
        "closed_only": ("query", {"type": "boolean", "default": False}),
    },
    QUOTE: PATH_SYMBOL,
    HISTORY: {
        **PATH_SYMBOL,
        "timeframe": one_of(TIMEFRAMES, "1m"),
        **RANGE,
        "limit": ("query", {"type": "integer", "minimum": 1, "maximum": 10_000, "default": 1_000}),
    },
    SIGNALS: {
        "status": one_of(["active", "closed", "all"], "active"),
        "limit": up_to_500(50),
        "symbol": ("query", {"type": "string"}),
        "user": ("query", {"type": "string"}),
        **RANGE,
    },
    ONE_SIGNAL: {"id": ("path", {"type": "string"})},
    PROOF: {"id": ("path", {"type": "string"})},
    LEDGER: {
        "after": ("query", {"type": "integer", "minimum": 0, "maximum": 999_999_999, "default": 0}),
        "limit": up_to_500(50),
    },
    PUBLISHER: {"user": ("path", {"type": "string"})},
    NEWS: {
        "category": list_of(CATEGORIES),
        "limit": up_to_500(20),
        "expand": list_of(NEWS_EXTRAS),
        **RANGE,
    },
    CALIBRATION: {},
    ANALYSIS: {**PATH_SYMBOL, "model": ("query", {"type": "string", "enum": ["tickwire-analyst-1"]})},
    ARCHIVE: {
        "kind": ("query", {"type": "string", "enum": ["candles", "manifest", "ticks"]}),
        **dict.fromkeys(("symbol", "cursor"), ("query", {"type": "string"})),
        **dict.fromkeys(("start", "end"), moment("date", "date-time")),
        "limit": up_to_500(100),
    },
    ARCHIVE_FILE: {
        "path": ("path", {"type": "string"}),
        **dict.fromkeys(("Range", "If-Range", "If-None-Match"), ("header", {"type": "string"})),
    },
    SESSION: {},
    LIMITS: {},
    QUOTES: {
        "symbols": (
            "query",
            {"type": "array", "minItems": 1, "items": {"type": "string", "pattern": SYMBOL}},
        )
    },
    ORDER_FLOW: {**PATH_SYMBOL, "start": MOMENT, "end": MOMENT, "limit": up_to_500(100)},
}
STATUSES = {
    SYMBOLS: {"200", "400", "401", "429", "500", "503"},
    MARKET: {"200", "400", "401", "404", "429", "500", "503"},
    QUOTE: {"200", "401", "404", "429", "500", "503"},
    HISTORY: {"200", "400", "401", "404", "406", "429", "500", "503"},
    SIGNALS: {"200", "400", "401", "404", "429", "500", "503"},
    ONE_SIGNAL: {"200", "401", "404", "429", "500", "503"},
    PROOF: {"200", "401", "404", "429", "500", "503"},
    LEDGER: {"200", "400", "401", "429", "500", "503"},
    PUBLISHER: {"200", "401", "404", "429", "500", "503"},
    NEWS: {"200", "400", "401", "429", "500", "503"},
    CALIBRATION: {"200", "401", "429", "500", "503"},
    ANALYSIS: {"200", "400", "401", "404", "429", "500", "503"},
    ARCHIVE: {"200", "400", "401", "404", "429", "500", "503"},
    ARCHIVE_FILE: {"200", "206", "304", "401", "404", "416", "429", "500", "503"},
    SESSION: {"200", "401", "429", "500", "503"},
    LIMITS: {"200", "401", "429", "500", "503"},
    QUOTES: {"200", "400", "401", "429", "500", "503"},
    ORDER_FLOW: {"200", "400", "401", "404", "429", "500", "503"},
}
SIGNAL = {
    **dict.fromkeys(("id", "user", "symbol", "direction", "status", "timestamp"), "string"),
    **dict.fromkeys(("entry", "stop_loss", "take_profit"), "number"),
}
FIELDS = {
    "InstrumentList": {"items": "array", "count": "integer"},
    "Instrument": {
        **dict.fromkeys(("symbol", "name", "type"), "string"),
        **dict.fromkeys(("pip_size", "contract_size", "margin_rate", "min_lot", "max_lot"), "number"),
    },
    "Market": {"symbol": "string", "timeframe": "string", "ohlcv": "array", "quote": None},
    "Candle": {"time": "string", **dict.fromkeys(("open", "high", "low", "close", "volume"), "number")},
    "NestedQuote": {"bid": "number", "ask": "number", "spread": "number", "timestamp": "string"},
    "Quote": {
        "symbol": "string",
        "bid": "number",
        "ask": "number",
        "spread": "number",
        "timestamp": "string",
    },
    "History": {
        "symbol": "string",
        "timeframe": "string",
        "ohlcv": "array",
        "count": "integer",
        "next": ["string", "null"],
    },
    "QuoteList": {"items": "array", "count": "integer", "rejected": "array"},
    "ListedQuote": {
        **dict.fromkeys(("symbol", "timestamp", "state"), "string"),
        **dict.fromkeys(("bid", "ask", "spread"), "number"),
        "age_ms": "integer",
    },
    "RejectedSymbol": {"symbol": "string", "code": "string"},
    "OrderFlow": {"symbol": "string", "items": "array", "count": "integer"},
    "OrderFlowMinute": {
        "time": "string",
        **dict.fromkeys(("bid_volume", "ask_volume", "delta", "cumulative_delta"), "number"),
        "absorptions": "integer",
    },
    "SignalList": {"items": "array", "count": "integer"},
    "ActiveSignal": SIGNAL,
    "ClosedSignal": {
        **SIGNAL,
        **dict.fromkeys(("pnl", "pnl_percent", "pnl_r", "close_price"), "number"),
        **dict.fromkeys(("closed_at", "close_reason"), "string"),
    },
    "Proof": {
        **dict.fromkeys(("id", "user", "symbol", "direction", "status"), "string"),
        **dict.fromkeys(("inputs", "steps", "ledger"), "array"),
        "entry": None,
        "exit": None,
    },
    "Input": {"name": "string", "value": "number", "exact": "string"},
    "Step": {
        **dict.fromkeys(("name", "formula", "exact"), "string"),
        "value": "number",
        "decimals": ["integer", "null"],
    },
    "Ledger": {"head": None, "items": "array", "count": "integer"},
    "LedgerItem": {
        **dict.fromkeys(("kind", "signal", "payload", "previous", "hash"), "string"),
        "position": "integer",
    },
    "Publisher": {
        "user": "string",
        "too_few": "boolean",
        **dict.fromkeys(("active", "signals", "max_drawdown_signals"), "integer"),
        **dict.fromkeys(("total_r", "max_drawdown_r"), "number"),
        **dict.fromkeys(
            ("win_rate", "expectancy_r", "best_excursion_r", "worst_excursion_r"), ["number", "null"]
        ),
        **dict.fromkeys(("by_symbol", "equity"), "array"),
        "closed_by": None,
    },
    "NewsList": {"items": "array"},
    "NewsItem": {
        **dict.fromkeys(("title", "category", "sentiment", "timestamp"), "string"),
        "sentiment_score": "number",
    },
    "Calibration": {"as_of": "string", "enough": "integer", "items": "array", "count": "integer"},
    "NewsCalibration": {
        **dict.fromkeys(("category", "sentiment", "horizon"), "string"),
        **dict.fromkeys(("count", "left_out", "pending"), "integer"),
        **dict.fromkeys(("mean_move_percent", "median_move_percent", "hit_rate"), ["number", "null"]),
        "too_few": "boolean",
    },
    "ArchiveList": {"items": "array", "count": "integer", "next": ["string", "null"]},
    "ArchiveFile": {
        **dict.fromkeys(("path", "kind", "day", "sha256"), "string"),
        "symbol": ["string", "null"],
        "bytes": "integer",
        "rows": ["integer", "null"],
    },
    "Session": {
        **dict.fromkeys(
            ("instruments_active", "clients_connected", "signals_active", "uptime_seconds"), "integer"
        ),
        "ai_models_available": "array",
        "server_time": "string",
    },
}
OPTIONAL = {
    "Instrument": set(EXPANSIONS),
    "NewsItem": set(NEWS_EXTRAS),
    "SignalList": {"next"},
    "NewsList": {"next"},
}
