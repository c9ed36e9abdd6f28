"""The same answers from FastAPI, as its documentation writes them: response models and dependencies.
Quotes and candles come from memory, signals and news through SQLAlchemy Core from the database."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections import deque
from datetime import UTC, datetime
from typing import Annotated, Any, Literal
from uuid import UUID

import sqlalchemy as sql
from fastapi import Depends, FastAPI, HTTPException, Query, Response, Security
from fastapi.security import APIKeyHeader
from pydantic import BaseModel
from sqlalchemy import DateTime, Dialect, Float, Integer, String, TypeDecorator, Uuid

LIMIT, WINDOW_S = 1_000_000_000, 60.0
KEPT = 500
VALUES = ("open", "high", "low", "close", "volume")
Timeframe = Literal["1m", "5m", "15m", "1h", "4h", "1d"]
Category = Literal["forex", "gold", "crypto", "macro"]


class Candle(BaseModel):
    time: datetime
    open: float
    high: float
    low: float
    close: float
    volume: float


class NestedQuote(BaseModel):
    bid: float
    ask: float
    spread: float
    timestamp: datetime


class Quote(NestedQuote):
    symbol: str


class Market(BaseModel):
    symbol: str
    timeframe: Timeframe
    ohlcv: list[Candle]
    quote: NestedQuote


class History(BaseModel):
    symbol: str
    timeframe: Timeframe
    ohlcv: list[Candle]
    count: int
    next: str | None


class Signal(BaseModel):
    id: UUID
    user: str
    symbol: str
    direction: Literal["buy", "sell"]
    entry: float
    stop_loss: float
    take_profit: float
    status: Literal["active", "closed"]
    timestamp: datetime


class Signals(BaseModel):
    items: list[Signal]
    count: int


class NewsItem(BaseModel):
    title: str
    category: Category
    sentiment: Literal["bullish", "neutral", "bearish"]
    sentiment_score: float
    timestamp: datetime


class News(BaseModel):
    items: list[NewsItem]


class UtcDateTime(TypeDecorator[datetime]):
    """SQLite keeps no zone; what is stored is UTC."""

    impl = DateTime
    cache_ok = True

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


def table(name: str, **kinds: Any) -> sql.TableClause:
    """Only the columns that are read."""
    return sql.table(name, *(sql.column(column, kind) for column, kind in kinds.items()))


instruments = table("instruments_instrument", id=Integer, symbol=String, digits=Integer)
users = table("accounts_user", id=Integer, username=String)
prices = dict.fromkeys(VALUES, Float)
candles = table("market_candle", instrument_id=Integer, timeframe=String, opened_at=UtcDateTime, **prices)
quotes = table("market_lastquote", instrument_id=Integer, bid=Float, ask=Float, quoted_at=UtcDateTime)
signals = table(
    "signals_feed_signal",
    **{"id": Uuid, "user_id": Integer, "instrument_id": Integer, "direction": String, "status": String},
    **dict.fromkeys(("entry", "stop_loss", "take_profit"), Float),
    published_at=UtcDateTime,
)
news = table(
    "news_newsitem",
    **dict.fromkeys(("title", "category", "status"), String),
    **{"id": Integer, "sentiment_score": Float, "published_at": UtcDateTime},
)
accounts: dict[str, int] = {}
windows: dict[int, deque[float]] = {}
markets: dict[tuple[str, str], list[Candle]] = {}
board: dict[str, Quote] = {}
engine = sql.create_engine(f"sqlite:///{os.environ['BENCH_DATABASE']}")
api_key = APIKeyHeader(name="X-API-Key")


async def limited(response: Response, key: Annotated[str, Security(api_key)]) -> None:
    """The key is known by its hash; each account has a sliding window."""
    account = accounts.get(hashlib.sha256(key.encode()).hexdigest())
    if account is None:
        raise HTTPException(401, "invalid API key")
    now, window = time.monotonic(), windows.setdefault(account, deque())
    while window and window[0] <= now - WINDOW_S:
        window.popleft()
    if len(window) >= LIMIT:
        raise HTTPException(
            429, "too many requests", {"Retry-After": str(math.ceil(window[0] + WINDOW_S - now))}
        )
    window.append(now)
    response.headers["X-RateLimit-Limit"] = str(LIMIT)
    response.headers["X-RateLimit-Remaining"] = str(LIMIT - len(window))
    response.headers["X-RateLimit-Reset"] = str(math.ceil(time.time() + window[0] + WINDOW_S - now))


app = FastAPI(dependencies=[Depends(limited)])


@app.get("/api/market/{symbol}/quote")
async def get_quote(symbol: str) -> Quote:
    if symbol not in board:
        raise HTTPException(404, "unknown symbol")
    return board[symbol]


@app.get("/api/market/{symbol}/history", response_model=History)
def get_history(
    symbol: str, timeframe: Timeframe = "1m", limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000
) -> Any:
    wanted = (
        sql.select(candles.c.opened_at.label("time"), *(candles.c[name] for name in VALUES))
        .join_from(candles, instruments, instruments.c.id == candles.c.instrument_id)
        .where(instruments.c.symbol == symbol, candles.c.timeframe == timeframe)
        .order_by(candles.c.opened_at)
        .limit(limit + 1)
    )
    rows = read(wanted)
    page = rows[:limit]
    following = page[-1]["time"].isoformat() if len(rows) > limit else None
    return {"symbol": symbol, "timeframe": timeframe, "ohlcv": page, "count": len(page), "next": following}


@app.get("/api/market/{symbol}")
async def get_market(
    symbol: str, timeframe: Timeframe = "1h", bars: Annotated[int, Query(ge=1, le=KEPT)] = 100
) -> Market:
    if symbol not in board:
        raise HTTPException(404, "unknown symbol")
    return Market(
        symbol=symbol, timeframe=timeframe, ohlcv=markets[symbol, timeframe][-bars:], quote=board[symbol]
    )


@app.get("/api/signals", response_model=Signals)
def get_signals(
    status: Literal["active", "closed", "all"] = "active", limit: Annotated[int, Query(ge=1, le=500)] = 50
) -> Any:
    own = ("id", "direction", "entry", "stop_loss", "take_profit", "status")
    wanted = sql.select(
        *(signals.c[name] for name in own),
        users.c.username.label("user"),
        instruments.c.symbol,
        signals.c.published_at.label("timestamp"),
    ).join_from(signals, users, users.c.id == signals.c.user_id)
    wanted = wanted.join(instruments, instruments.c.id == signals.c.instrument_id)
    if status != "all":
        wanted = wanted.where(signals.c.status == status)
    items = read(wanted.order_by(signals.c.published_at.desc(), signals.c.id.desc()).limit(limit))
    return {"items": items, "count": len(items)}


@app.get("/api/news", response_model=News)
def get_news(limit: Annotated[int, Query(ge=1, le=500)] = 20) -> Any:
    wanted = sql.select(
        news.c.title, news.c.category, news.c.sentiment_score, news.c.published_at.label("timestamp")
    ).where(news.c.status == "published")
    rows = read(wanted.order_by(news.c.published_at.desc(), news.c.id.desc()).limit(limit))
    return {"items": [{**row, "sentiment": label(row["sentiment_score"])} for row in rows]}


def label(score: float) -> str:
    return "bullish" if score >= 0.15 else "bearish" if score <= -0.15 else "neutral"


def read(wanted: sql.Select[Any]) -> list[Any]:
    with engine.connect() as connection:
        return list(connection.execute(wanted).mappings())


def load_market(instrument_id: int, symbol: str, digits: int) -> None:
    for row in read(sql.select(quotes).where(quotes.c.instrument_id == instrument_id)):
        spread = round(row["ask"] - row["bid"], digits)
        board[symbol] = Quote(
            symbol=symbol, bid=row["bid"], ask=row["ask"], spread=spread, timestamp=row["quoted_at"]
        )
    own = sql.select(candles).where(candles.c.instrument_id == instrument_id)
    for row in read(own.order_by(candles.c.opened_at)):
        kept = markets.setdefault((symbol, row["timeframe"]), [])
        kept.append(Candle.model_validate({**row, "time": row["opened_at"]}))


def make_app() -> FastAPI:
    """Load what is answered from memory."""
    accounts[hashlib.sha256(os.environ["BENCH_KEY"].encode()).hexdigest()] = 1
    for row in read(sql.select(instruments)):
        load_market(row["id"], row["symbol"], row["digits"])
    return app
