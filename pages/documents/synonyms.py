"""By which words readers look for a passage that does not use them, or not in its title."""

from .contents import Entry
from .reference import operations

STREAMS = "streams websocket websockets ws"
ALSO_CALLED = {
    "/docs#key": "token sign up register get a key",
    "/docs/clients": "sdk sdks library libraries package python typescript javascript node client clients",
    "/docs/clients#install": "pip npm install python typescript javascript",
    "/docs/without-client": "curl wscat websocat raw",
    "/docs/guides/start#run-the-demo": "sandbox demo test environment trial playground",
    "/docs/guides/streams#test-your-client": "sandbox simulate chaos test",
    "/docs/api#conventions": "authentication authenticate authorization auth api key bearer token header"
    " idempotency idempotent webhook webhooks base url date format read only",
    "/docs/api#pagination": "pagination paginate paging page pages cursor next limit offset",
    "/docs/api#browsers": "cors browser browsers cross origin",
    "/docs/api#limits": "rate limit limits limiting ratelimit throttling throttle quota allowance 429 tiers",
    "/docs/api#versions": "version versioning deprecation compatibility breaking changes",
    "/docs/api#endpoints": "postman insomnia openapi swagger specification spec schema codegen generator",
    "/docs/api/headers": "etag caching cache conditional",
    "/docs/api/errors": "error errors code codes status http exceptions unauthorized forbidden",
    "/docs/api/getHistory": "historical history data ohlc ohlcv bars candles candlesticks backfill timeframe"
    " timeframes interval csv export",
    "/docs/api/getMarket": "chart candles",
    "/docs/api/getQuote": "price bid ask ticker last",
    "/docs/api/listQuotes": "prices tickers batch bulk",
    "/docs/api/listSymbols": "instruments tickers pairs symbols assets markets",
    "/docs/api/getArchiveFile": "parquet tick download",
    "/docs/streams": f"asyncapi {STREAMS}",
    "/docs/streams#connect": f"authentication authenticate auth api key handshake connect {STREAMS}",
    "/docs/streams#go-on": f"reconnect reconnecting reconnection resume backoff lost replay {STREAMS}",
    "/docs/streams/messages#heartbeat": "keepalive keep alive",
    "/docs/streams/errors": f"websocket error errors codes close {STREAMS}",
    "/docs/operate/scale": "scaling cluster horizontal load balancer kubernetes",
    "/docs/operate/install": "deploy deployment docker self host hosting",
}


def also_called(entry: Entry, address: str) -> str:
    if address in ALSO_CALLED:
        own = ALSO_CALLED[address]
    else:
        own = STREAMS if address.startswith("/docs/streams") and "#" not in address else ""
    operation = entry.path.removeprefix("/docs/api/")
    return f"{operation} {own}".strip() if operation in operations.operations() else own
