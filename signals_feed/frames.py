"""The data frames of /ws/signals: the Signal without its status when it is published, and how it ended."""

from __future__ import annotations

from typing import Literal

import msgspec

from market.streams.asyncapi import Channel
from market.streams.frames import Milliseconds
from market.streams.kinds import SIGNALS

from .samples import ACTIVE, CLOSED

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


NEW = {name: value for name, value in ACTIVE.items() if name != "status"} | {"time": 1_795_165_964_118}
ENDED = {"type": "signal.closed", **CLOSED, "time": 1_795_163_477_004}
CHANNEL = Channel(
    SIGNALS,
    "Signals",
    "Every signal that is published. Without `symbols`: of all instruments.",
    (NewSignal, SignalClosed),
    {NewSignal: {"Published": NEW}, SignalClosed: {"Target reached": ENDED}},
)
