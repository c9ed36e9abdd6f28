"""The data frames of /ws/signals: the Signal without its status when it is published, and how it ended."""

from __future__ import annotations

from typing import Literal

import msgspec

from market.streams.asyncapi import Channel
from market.streams.frames import Milliseconds
from market.streams.kinds import SIGNALS

Direction = Literal["buy", "sell"]


class NewSignal(msgspec.Struct):
    id: str
    user: str
    symbol: str
    direction: Direction
    entry: float
    stop_loss: float
    take_profit: float
    timestamp: str
    time: Milliseconds


class SignalClosed(msgspec.Struct, tag="signal.closed"):
    """Only with events: ["signal.closed"]."""

    id: str
    user: str
    symbol: str
    direction: Direction
    entry: float
    stop_loss: float
    take_profit: float
    status: Literal["closed"]
    timestamp: str
    pnl: float
    pnl_percent: float
    pnl_r: float
    close_price: float
    closed_at: str
    close_reason: Literal["take_profit", "stop_loss", "manual", "expired", "cancelled"]
    time: Milliseconds


NEW = {
    "id": "6f1c2f5e-8f0b-4a53-9d0e-2b8f6f6f9a01",
    "user": "marta",
    "symbol": "EURUSD",
    "direction": "buy",
    "entry": 1.0842,
    "stop_loss": 1.081,
    "take_profit": 1.09,
    "timestamp": "2026-11-20T09:12:44.118Z",
    "time": 1_795_165_964_118,
}
CLOSED = {
    "type": "signal.closed",
    "id": "0b7d1a9c-3a5e-4c86-8a43-5f0f5f3f1d77",
    "user": "kenji",
    "symbol": "XAUUSD",
    "direction": "sell",
    "entry": 2651.4,
    "stop_loss": 2660.4,
    "take_profit": 2633.4,
    "status": "closed",
    "timestamp": "2026-11-19T15:40:02.730Z",
    "pnl": 1800.0,
    "pnl_percent": 0.6789,
    "pnl_r": 2.0,
    "close_price": 2633.4,
    "closed_at": "2026-11-20T08:31:17.004Z",
    "close_reason": "take_profit",
    "time": 1_795_163_477_004,
}
CHANNEL = Channel(
    SIGNALS,
    "Signals",
    "Every signal that is published. Without `symbols`: of all instruments.",
    (NewSignal, SignalClosed),
    {NewSignal: {"Published": NEW}, SignalClosed: {"Target reached": CLOSED}},
)
