"""The same database as SQLAlchemy Core tables: only the columns that the peer reads."""

from __future__ import annotations

from datetime import UTC, datetime

from sqlalchemy import Column, DateTime, Dialect, Float, Integer, MetaData, String, Table, TypeDecorator, Uuid


class UtcDateTime(TypeDecorator[datetime]):
    """SQLite keeps no zone; what is stored is UTC."""

    impl = DateTime
    cache_ok = True

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.replace(tzinfo=UTC)


metadata = MetaData()
instruments = Table(
    "instruments_instrument",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("symbol", String),
    Column("digits", Integer),
)
users = Table("accounts_user", metadata, Column("id", Integer, primary_key=True), Column("username", String))
candles = Table(
    "market_candle",
    metadata,
    Column("instrument_id", Integer),
    Column("timeframe", String),
    Column("opened_at", UtcDateTime),
    *(Column(name, Float) for name in ("open", "high", "low", "close", "volume")),
)
quotes = Table(
    "market_lastquote",
    metadata,
    Column("instrument_id", Integer, primary_key=True),
    Column("bid", Float),
    Column("ask", Float),
    Column("quoted_at", UtcDateTime),
)
signals = Table(
    "signals_feed_signal",
    metadata,
    Column("id", Uuid, primary_key=True),
    Column("user_id", Integer),
    Column("instrument_id", Integer),
    Column("direction", String),
    *(Column(name, Float) for name in ("entry", "stop_loss", "take_profit")),
    Column("status", String),
    Column("published_at", UtcDateTime),
)
news = Table(
    "news_newsitem",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("title", String),
    Column("category", String),
    Column("status", String),
    Column("sentiment_score", Float),
    Column("published_at", UtcDateTime),
)
