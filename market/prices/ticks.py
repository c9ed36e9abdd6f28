import msgspec


class Tick(msgspec.Struct, frozen=True, gc=False):
    symbol: str
    bid: float
    ask: float
    time_ms: int
    volume: float
