from signals_feed.contradictions import FILL_AFTER_MS

from ..addresses import read_s3_url
from ..variable import VariableGroup, address, number, secret, switch, text, whole

MARKET = VariableGroup(
    "The market",
    (
        text("CANDLE_PRICE", "bid", "The price from which candles are made.", among=("bid", "mid")),
        whole(
            "CLOSE_GRACE_MS",
            2_000,
            "How long after the end of a minute its ticks are accepted, unless a later one arrives first.",
        ),
        whole(
            "FILL_AFTER_MS",
            FILL_AFTER_MS,
            "How long after a signal's publication its fill waits at least; longer if its feed is later.",
            lowest=FILL_AFTER_MS,
            highest=10_000,
        ),
        switch(
            "STEADY_CLOCK",
            True,
            "Keeps the market's time in order when the machine's clock is set; 0 is for tests.",
        ),
        whole("CANDLE_DAYS_1M", 400, "For how many days 1m candles are kept; 0 means forever."),
        whole("CANDLE_DAYS_5M", 800, "For how many days 5m candles are kept; 0 means forever."),
        whole("CANDLE_DAYS_15M", 1600, "For how many days 15m candles are kept; 0 means forever."),
        whole("CANDLE_DAYS_1H", 0, "For how many days 1h candles are kept; 0 means forever."),
        whole("CANDLE_DAYS_4H", 0, "For how many days 4h candles are kept; 0 means forever."),
        whole("CANDLE_DAYS_1D", 0, "For how many days 1d candles are kept; 0 means forever."),
        whole("DEMO_SEED", 7, "A different number gives a different simulated market."),
        whole(
            "DEMO_RATE",
            0,
            "Ticks a second of the whole simulated market, for load tests; 0 is a realistic rate.",
            highest=50_000,
        ),
    ),
)

FEEDS = VariableGroup(
    "Feeds",
    (
        secret("OANDA_TOKEN", "The token of an OANDA account."),
        text("OANDA_ACCOUNT", "", "The number of that account; without both, OANDA is not contacted."),
        address(
            "OANDA_STREAM_URL", "https://stream-fxpractice.oanda.com", "OANDA's prices.", "https", "http"
        ),
        address("OANDA_REST_URL", "https://api-fxpractice.oanda.com", "OANDA's history.", "https", "http"),
        address("KRAKEN_WS_URL", "wss://ws.kraken.com/v2", "Kraken's prices.", "wss", "ws"),
        address("KRAKEN_REST_URL", "https://api.kraken.com", "Kraken's history.", "https", "http"),
        address("BINANCE_WS_URL", "wss://data-stream.binance.vision", "Binance's prices.", "wss", "ws"),
        address("BINANCE_REST_URL", "https://data-api.binance.vision", "Binance's history.", "https", "http"),
        text(
            "REPLAY_DIR",
            None,
            "The folder with files such as EURUSD.csv for instruments with the source `replay`.",
            otherwise="`VAR_DIR/replay`",
        ),
        number(
            "REPLAY_SPEED",
            1.0,
            "10 is ten times real speed; 0 plays everything at once, with its original times.",
        ),
    ),
)

ARCHIVE = VariableGroup(
    "The archive",
    (
        switch(
            "ARCHIVE", True, "Keeps accepted ticks and closed minutes as files; needs the extra `archive`."
        ),
        text(
            "ARCHIVE_DIR",
            None,
            "The folder of its files; processes that share them need a folder that all of them can see. A "
            "relative path starts at `VAR_DIR`.",
            otherwise="`VAR_DIR/archive`",
        ),
        text(
            "ARCHIVE_S3_URL",
            None,
            "s3://bucket/prefix keeps the files there instead; needs the extra `s3`.",
            otherwise="the folder above",
            read=read_s3_url,
        ),
        text(
            "ARCHIVE_S3_ENDPOINT",
            None,
            "The address of a store that speaks S3's protocol but is not Amazon's.",
            otherwise="Amazon's",
            begins=("https://", "http://"),
        ),
        text("ARCHIVE_S3_REGION", "", "The bucket's region, such as eu-central-1."),
        text(
            "ARCHIVE_S3_KEY_ID",
            "",
            "The ID of an access key; without one, it is looked up where Amazon's tools look for it.",
        ),
        secret("ARCHIVE_S3_SECRET", "The secret of that access key."),
        whole(
            "ARCHIVE_DAYS",
            0,
            "For how many days its files are kept, counted back from the newest; 0 means forever.",
        ),
    ),
)
