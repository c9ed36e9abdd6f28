from ..addresses import read_s3_url
from ..variable import VariableGroup, address, number, secret, switch, text, whole

MARKET = VariableGroup(
    "The market",
    (
        text("CANDLE_PRICE", "bid", "The price from which candles are made.", among=("bid", "mid")),
        whole(
            "CLOSE_GRACE_MS",
            2_000,
            "How long after a minute's end its ticks are taken, unless a later one comes.",
        ),
        switch(
            "STEADY_CLOCK", True, "The market's time stays in order when the clock is set; 0 is for tests."
        ),
        whole("CANDLE_DAYS_1M", 400, "How many days candles of a minute are kept; 0 means forever."),
        whole("CANDLE_DAYS_5M", 800, "How many days candles of five minutes are kept; 0 means forever."),
        whole("CANDLE_DAYS_15M", 1600, "How many days candles of fifteen minutes are kept; 0 means forever."),
        whole("CANDLE_DAYS_1H", 0, "How many days candles of an hour are kept; 0 means forever."),
        whole("CANDLE_DAYS_4H", 0, "How many days candles of four hours are kept; 0 means forever."),
        whole("CANDLE_DAYS_1D", 0, "How many days candles of a day are kept; 0 means forever."),
        whole("DEMO_SEED", 7, "Another number, another simulated market."),
        whole(
            "DEMO_RATE",
            0,
            "Ticks a second of the whole simulated market, for load tests; 0 is lifelike.",
            highest=50_000,
        ),
    ),
)

FEEDS = VariableGroup(
    "Feeds",
    (
        secret("OANDA_TOKEN", "The token of an OANDA account."),
        text("OANDA_ACCOUNT", "", "Its number; without both OANDA is not asked."),
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
            "Holds files such as EURUSD.csv for instruments with the source `replay`.",
            otherwise="`VAR_DIR/replay`",
        ),
        number(
            "REPLAY_SPEED", 1.0, "10 is ten times real speed; 0 plays all at once, with the times it had."
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
            "Where its files are; processes that share them need one folder that all of them see. A relative "
            "path counts from `VAR_DIR`.",
            otherwise="`VAR_DIR/archive`",
        ),
        text(
            "ARCHIVE_S3_URL",
            None,
            "s3://bucket/prefix: they are kept there instead; needs the extra `s3`.",
            otherwise="the folder above",
            read=read_s3_url,
        ),
        text(
            "ARCHIVE_S3_ENDPOINT",
            None,
            "Where a store is that speaks S3's protocol and is not Amazon's.",
            otherwise="Amazon's",
            begins=("https://", "http://"),
        ),
        text("ARCHIVE_S3_REGION", "", "The bucket's region, such as eu-central-1."),
        text(
            "ARCHIVE_S3_KEY_ID",
            "",
            "The id of an access key; without one it is looked for where Amazon's tools do.",
        ),
        secret("ARCHIVE_S3_SECRET", "The secret of that access key."),
        whole("ARCHIVE_DAYS", 0, "How many days its files are kept, counted from the newest; 0: forever."),
    ),
)
