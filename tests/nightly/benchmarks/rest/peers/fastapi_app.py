"""The same answers from FastAPI, as its documentation writes them: response models and dependencies.
Quotes and candles come from memory, signals and news through SQLAlchemy Core from the database."""

from __future__ import annotations

import hashlib
import math
import os
import time
from collections import deque
from typing import Annotated, Any

from fastapi import Depends, FastAPI, HTTPException, Query, Response, Security
from fastapi.security import APIKeyHeader
from sqlalchemy import Engine, Select, create_engine, select

from . import fastapi_models as models
from .fastapi_tables import candles, instruments, news, quotes, signals, users

LIMIT, WINDOW_S = 1_000_000_000, 60.0
KEPT = 500
VALUES = ("open", "high", "low", "close", "volume")

accounts: dict[str, int] = {}
windows: dict[int, deque[float]] = {}
markets: dict[tuple[str, str], list[models.Candle]] = {}
board: dict[str, models.Quote] = {}
engine: Engine
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
async def get_quote(symbol: str) -> models.Quote:
    if symbol not in board:
        raise HTTPException(404, "unknown symbol")
    return board[symbol]


@app.get("/api/market/{symbol}/history", response_model=models.History)
def get_history(
    symbol: str, timeframe: models.Timeframe = "1m", limit: Annotated[int, Query(ge=1, le=10_000)] = 1_000
) -> Any:
    wanted = (
        select(candles.c.opened_at.label("time"), *(candles.c[name] for name in VALUES))
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
    symbol: str, timeframe: models.Timeframe = "1h", bars: Annotated[int, Query(ge=1, le=KEPT)] = 100
) -> models.Market:
    if symbol not in board:
        raise HTTPException(404, "unknown symbol")
    return models.Market(
        symbol=symbol, timeframe=timeframe, ohlcv=markets[symbol, timeframe][-bars:], quote=board[symbol]
    )


@app.get("/api/signals", response_model=models.Signals)
def get_signals(
    status: models.StatusFilter = "active",
    symbol: str | None = None,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
) -> Any:
    wanted = select(
        signals.c.id,
        users.c.username.label("user"),
        instruments.c.symbol,
        signals.c.direction,
        signals.c.entry,
        signals.c.stop_loss,
        signals.c.take_profit,
        signals.c.status,
        signals.c.published_at.label("timestamp"),
    ).join_from(signals, users, users.c.id == signals.c.user_id)
    wanted = wanted.join(instruments, instruments.c.id == signals.c.instrument_id)
    if status != "all":
        wanted = wanted.where(signals.c.status == status)
    if symbol is not None:
        wanted = wanted.where(instruments.c.symbol == symbol)
    items = read(wanted.order_by(signals.c.published_at.desc(), signals.c.id.desc()).limit(limit))
    return {"items": items, "count": len(items)}


@app.get("/api/news", response_model=models.News)
def get_news(category: str = "", limit: Annotated[int, Query(ge=1, le=500)] = 20) -> Any:
    wanted = select(
        news.c.title, news.c.category, news.c.sentiment_score, news.c.published_at.label("timestamp")
    ).where(news.c.status == "published")
    if category:
        wanted = wanted.where(news.c.category.in_(category.split(",")))
    rows = read(wanted.order_by(news.c.published_at.desc(), news.c.id.desc()).limit(limit))
    return {"items": [{**row, "sentiment": label(row["sentiment_score"])} for row in rows]}


def label(score: float) -> str:
    return "bullish" if score >= 0.15 else "bearish" if score <= -0.15 else "neutral"


def read(wanted: Select[Any]) -> list[Any]:
    with engine.connect() as connection:
        return list(connection.execute(wanted).mappings())


def open_app(database: str, key: str) -> FastAPI:
    """Load what is answered from memory."""
    global engine
    engine = create_engine(f"sqlite:///{database}")
    accounts[hashlib.sha256(key.encode()).hexdigest()] = 1
    for row in read(select(instruments)):
        load_market(row["id"], row["symbol"], row["digits"])
    return app


def close_app() -> None:
    engine.dispose()
    for memory in (accounts, windows, markets, board):
        memory.clear()


def load_market(instrument_id: int, symbol: str, digits: int) -> None:
    for row in read(select(quotes).where(quotes.c.instrument_id == instrument_id)):
        spread = round(row["ask"] - row["bid"], digits)
        board[symbol] = models.Quote(
            symbol=symbol, bid=row["bid"], ask=row["ask"], spread=spread, timestamp=row["quoted_at"]
        )
    newest_first = select(candles).where(candles.c.instrument_id == instrument_id)
    for row in read(newest_first.order_by(candles.c.opened_at)):
        kept = markets.setdefault((symbol, row["timeframe"]), [])
        kept.append(models.Candle.model_validate({**row, "time": row["opened_at"]}))


def make_app() -> FastAPI:
    return open_app(os.environ["BENCH_DATABASE"], os.environ["BENCH_KEY"])
