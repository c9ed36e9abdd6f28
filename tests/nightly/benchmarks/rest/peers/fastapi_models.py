"""The response models of the FastAPI peer: exactly the specification's fields."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel

Timeframe = Literal["1m", "5m", "15m", "1h", "4h", "1d"]
Category = Literal["forex", "gold", "crypto", "macro"]
StatusFilter = Literal["active", "closed", "all"]


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
