"""/ws/market and /ws/orderflow."""

from __future__ import annotations

from .streams import service
from .streams.numbered import NumberedConsumer


class MarketConsumer(NumberedConsumer):
    stream = service.prices


class OrderFlowConsumer(NumberedConsumer):
    stream = service.order_flow
