"""Why a tick is not accepted, and why a whole message is not. One table for HTTP, sockets and the docs."""

from core.contract.errors import ApiError

MAX_TICKS = 1_000
MAX_BYTES = 1_048_576
REASONS = {
    "malformed": "The tick has a wrong or missing field.",
    "symbol_not_allowed": "This key may not send ticks of this symbol.",
    "unknown_symbol": "There is no active instrument with this symbol.",
    "not_its_source": "The instrument names other sources: write push as its source in the back office.",
    "standby": "Another source prices this instrument now; this one takes over when that one falls silent.",
    "not_finite": "Prices and volume must be finite numbers.",
    "not_positive": "Prices must be above 0 and the volume must not be below 0.",
    "crossed": "The ask is below the bid.",
    "too_high": "A price or the volume is too high: it must be below 10,000,000,000.",
    "future": "The time is more than 5 seconds ahead of this service's clock.",
    "duplicate": "A tick with this or a later seq was accepted before, or one with the same time and values.",
    "older_than_last": "A later tick of this instrument and minute was accepted before.",
    "too_late": "The minute of this tick is closed and cannot change any more.",
    "outlier": (
        "The price is too far from the last one, until three ticks in a row agree on it; or `price` is too "
        "far from the tick's own bid and ask."
    ),
    "not_running": "The market engine is not running.",
    "market_closed": "The instrument's market is closed at this time.",
}


def sentence(code: str) -> str:
    return REASONS.get(code, "The tick was refused.")


class InvalidMessage(ApiError):
    """Nothing of the message was accepted."""

    status_code, code = 400, "invalid_message"


class TooLarge(ApiError):
    status_code, code = 413, "too_large"

    def __init__(self, what: str, most: int) -> None:
        super().__init__(f"Send at most {most:,} {what} in one message.", max=most)


class TooSlow(ApiError):
    status_code, code = 408, "body_timeout"
    message = "The body did not end in time. Send it at once."

    def __init__(self) -> None:
        super().__init__()
        # The rest of the body must not be read as the next request.
        self.headers["Connection"] = "close"


class MissingIngestKey(ApiError):
    status_code, code = 401, "missing_ingest_key"
    message = "Send an ingest key: Authorization: Bearer tw_ingest_…, or X-Ingest-Key."


class InvalidIngestKey(ApiError):
    status_code, code = 401, "invalid_ingest_key"
    message = "This ingest key is not valid. Staff issue them in the back office; API keys do not work here."


class AuthTimeout(ApiError):
    status_code, code = 408, "auth_timeout"
    message = "No ingest key came in time. Connect again and send it first."


class Flood(ApiError):
    status_code, code = 429, "too_many_messages"
    message = "Send at most 100 pings and pongs a second. Connect again."
