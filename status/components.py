"""What the status page answers for, part by part."""

from typing import NamedTuple


class Component(NamedTuple):
    name: str
    title: str
    measured: str


COMPONENTS = (
    Component("rest", "REST API", "Responses without a fault of ours, while the database is available."),
    Component(
        "market",
        "Price stream",
        "/ws/market: the engine delivers, and no connection ends through a fault of ours.",
    ),
    Component("orderflow", "Order flow stream", "/ws/orderflow: measured like the price stream."),
    Component("candles", "Candle stream", "/ws/candles: measured like the price stream."),
    Component(
        "signals",
        "Signal stream",
        "/ws/signals: the database is available, and no connection ends through a fault of ours.",
    ),
    Component("news", "News stream", "/ws/news: measured like the signal stream."),
    Component("feeds", "Price feeds", "Instruments with fresh prices, among those whose market is open."),
    Component("sources", "News sources", "Sources that could be read, among those that are polled."),
)
NAMES = tuple(component.name for component in COMPONENTS)
