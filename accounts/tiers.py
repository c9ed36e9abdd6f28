"""Who is calling and what they may use, as plain values."""

import msgspec


class Allowances(msgspec.Struct, frozen=True):
    """The limits of a tier."""

    tier: str
    requests: int
    streams: int
    ai_calls: int


class Caller(msgspec.Struct, frozen=True):
    """An account at the door, known by one of its keys."""

    account_id: int
    key_id: int
    username: str
    allowances: Allowances
    expires_at: float | None
    is_demo: bool
