"""What the status page answers for, part by part."""

from typing import NamedTuple


class Component(NamedTuple):
    name: str
    title: str
    measured: str


COMPONENTS = (
    Component("rest", "REST API", "Answers that were not a fault of ours, while the database answers."),
    Component(
        "market", "Price stream", "/ws/market: the engine is heard, and no socket ends by a fault of ours."
    ),
    Component("orderflow", "Order flow stream", "/ws/orderflow: as the price stream."),
    Component("candles", "Candle stream", "/ws/candles: as the price stream."),
    Component(
        "signals",
        "Signal stream",
        "/ws/signals: the database answers, and no socket ends by a fault of ours.",
    ),
    Component("news", "News stream", "/ws/news: as the signal stream."),
    Component("feeds", "Price feeds", "Instruments with fresh prices, of those whose market is open."),
    Component("sources", "News sources", "Sources that could be read, of those that are polled."),
)
NAMES = tuple(component.name for component in COMPONENTS)
