"""/ws/market and /ws/orderflow."""

from __future__ import annotations

from .streams import service
from .streams.consumer import StreamConsumer


class MarketConsumer(StreamConsumer):
    stream = service.prices


class OrderFlowConsumer(StreamConsumer):
    stream = service.order_flow
