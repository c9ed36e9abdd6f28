"""All variables that Tickwire reads, in the order in which docs/operate/settings.md shows them.

A new one is a row under its title and a line in config/settings.py; `tickwire-server settings-table --write`
renews the page."""

from functools import partial

from signals_feed.contradictions import FILL_AFTER_MS

from .kinds import (
    Variable,
    number,
    read_contact_email,
    read_database_url,
    read_email_url,
    read_host,
    read_log,
    read_origin,
    read_own_host,
    read_page_origin,
    read_proxies,
    read_redis_prefix,
    read_redis_url,
    read_s3_url,
    read_witness,
    secret,
    switch,
    text,
    whole,
    words,
)

HTTP = ("https://", "http://")
WEBSOCKET = ("wss://", "ws://")
HIGHEST_PORT = 65_535

# Each title stands before the variables of its group.
TABLE: tuple[str | Variable, ...] = (
    "The installation",
    switch("PRODUCTION", False, "Does not start with unsafe settings, and closes demo features."),
    switch(
        "DEMO",
        None,
        "Fills the service with simulated instruments, history, people and prices. Use the same value for "
        "the service and for every command beside it.",
        otherwise="1, in production 0",
    ),
    switch(
        "PUBLIC_TERMINAL",
        None,
        "Opens the terminal, and the live prices of the front page, to visitors without an account. Your "
        "feeds' licences must permit it.",
        otherwise="as `DEMO`",
    ),
    switch("DEBUG", False, "Shows Django's error pages, which contain code and values."),
    text(
        "VAR_DIR",
        None,
        "The folder for the database file, the secret and everything else that this installation stores.",
        otherwise="in a checkout `var` beside the code, otherwise `tickwire` in `XDG_DATA_HOME`",
    ),
    text(
        "XDG_DATA_HOME",
        None,
        "The folder for the data of all programs; a relative path is ignored.",
        otherwise="`~/.local/share`",
    ),
    text(
        "STATIC_ROOT",
        None,
        "The folder from which pages get their static files; `collectstatic` fills it.",
        otherwise="`VAR_DIR/static`",
    ),
    text(
        "NOTIFY_SOCKET",
        "",
        "Set by systemd for units with Type=notify; the service reports there that it is ready.",
    ),
    secret(
        "SECRET_KEY",
        None,
        "Signs sessions and links.",
        is_needed=True,
        otherwise="generated at the first start, in `VAR_DIR/secret`",
    ),
    words(
        "SECRET_KEY_FALLBACKS", (), "Previous keys, whose sessions and links remain valid.", is_secret=True
    ),
    secret(
        "KEY_PEPPER",
        None,
        "Hashes API keys and encrypts second factors, so that the database alone grants no access.",
        is_needed=True,
        otherwise="derived from `SECRET_KEY`",
    ),
    words(
        "KEY_PEPPER_FALLBACKS",
        None,
        "Previous peppers, whose API keys and second factors remain valid.",
        is_secret=True,
        otherwise="derived from `SECRET_KEY_FALLBACKS` if the pepper is derived from `SECRET_KEY`",
    ),
    "HTTP",
    text("HOST", "127.0.0.1", "The address on which `serve` listens.", read=read_own_host),
    whole("PORT", 8000, "The port on which `serve` listens.", highest=HIGHEST_PORT),
    words(
        "ALLOWED_HOSTS",
        None,
        "The host names of the service; a request for any other name is rejected.",
        is_needed=True,
        otherwise="the loopback names, and `HOST`",
        read=read_host,
    ),
    words(
        "CSRF_TRUSTED_ORIGINS",
        None,
        "Pages of other hosts that may send forms, such as https://example.com.",
        otherwise="none",
        read=read_page_origin,
    ),
    text(
        "TRUSTED_PROXIES",
        "",
        "Addresses and networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are trusted.",
        read=read_proxies,
    ),
    whole(
        "CONNECTIONS_PER_ADDRESS",
        200,
        "Connections that one address may have open to one process; 0 means no limit.",
    ),
    switch("CONNECTIONS_CAP_LOOPBACK", False, "Counts connections from this machine as well."),
    switch("ALLOW_PLAIN_HTTP", False, "In production, accepts keys that reached the proxy over plain HTTP."),
    number(
        "DRAIN_S",
        None,
        "For how many seconds after SIGTERM `/readyz` answers 503 before the port closes.",
        otherwise="5 in production, otherwise 0",
    ),
    number(
        "STOP_WITHIN_S",
        20.0,
        "The maximum number of seconds that a process then takes to end, even if something hangs.",
    ),
    number(
        "DEADLINES_TIMES",
        1.0,
        "By how much a process is more patient with Redis, the database, the engine and clients before it "
        "gives up. For very slow machines, and for tests.",
        lowest=1.0,
    ),
    whole("API_THREADS", 8, "Threads per process in which the API queries the database.", lowest=1),
    whole("PAGE_THREADS", 6, "Threads per process in which pages are rendered.", lowest=1),
    "The database",
    secret(
        "DATABASE_URL",
        None,
        "postgresql://user:password@host:5432/name, with libpq options in its query, or sqlite:///path.",
        is_needed=True,
        otherwise="an SQLite file in `VAR_DIR`",
        read=read_database_url,
    ),
    whole(
        "DATABASE_POOL",
        None,
        "The maximum number of connections from one process to PostgreSQL.",
        lowest=1,
        otherwise="`API_THREADS` + `PAGE_THREADS` + 4",
    ),
    text(
        "DATABASE_POOLER",
        "none",
        "Use `transaction` with a PgBouncer in front of PostgreSQL that has `pool_mode = transaction`.",
        among=("none", "transaction"),
    ),
    number(
        "DATABASE_IDLE_TRANSACTION_S",
        10.0,
        "Seconds after which PostgreSQL ends an idle transaction; 0 means never. Unused behind a pooler.",
    ),
    number(
        "KEYS_TRUSTED_FOR_S",
        900.0,
        "Seconds that known keys and open streams outlast the database; a revocation can be as late.",
    ),
    whole(
        "MIGRATION_LOCK_MS",
        1_000,
        "How long a migration waits for a table in use; later queries queue behind it for that time.",
    ),
    "Redis",
    secret(
        "REDIS_URL",
        None,
        "redis://host:6379/0, rediss:// (TLS), or redis+sentinel://host,host/name/0, for many processes.",
        is_needed=True,
        otherwise="none: one process does everything",
        read=read_redis_url,
    ),
    text(
        "REDIS_PREFIX",
        "tickwire",
        "The beginning of all keys and channels; installations that share a Redis need different ones.",
        read=read_redis_prefix,
    ),
    secret(
        "BUS_REDIS_URL",
        None,
        "A separate Redis for the market's ticks, in the same forms.",
        otherwise="`REDIS_URL`",
        read=partial(read_redis_url, variable="BUS_REDIS_URL"),
    ),
    secret(
        "BUS_REPLICA_URL",
        None,
        "A replica of that Redis near this machine, from which web processes read ticks.",
        otherwise="none: they read from the Redis itself",
        read=partial(read_redis_url, variable="BUS_REPLICA_URL", sentinel=False),
    ),
    "Mail",
    secret(
        "EMAIL_URL",
        "consolemail://",
        "smtp+tls://user:password@host:587, smtps://user:password@host:465, or dummymail:// for no mail.",
        is_needed=True,
        read=read_email_url,
    ),
    whole(
        "EMAIL_TIMEOUT",
        10,
        "For how many seconds a mail waits for a mail server that does not answer.",
        lowest=1,
    ),
    text("DEFAULT_FROM_EMAIL", "Tickwire <no-reply@localhost>", "The sender of all mails."),
    text(
        "CONTACT_EMAIL",
        "",
        "An address at which users reach you; pages, mails, the OpenAPI document and `security.txt` name it.",
        read=read_contact_email,
    ),
    "Accounts",
    whole("SIGNUPS_A_DAY", 100, "Sign-up forms accepted a day from one address; 0 closes sign-up."),
    whole(
        "UNCONFIRMED_KEPT_DAYS",
        7,
        "Days after which users who never confirmed their address are deleted; 0 means never.",
    ),
    whole("PUBLICATIONS_PER_MINUTE", 10, "Signals that a publisher may publish a minute; 0 means no limit."),
    whole(
        "ACTIVE_SIGNALS_PER_PUBLISHER",
        100,
        "Active signals that a publisher may have at once; 0 means no limit.",
    ),
    "The ledger",
    text(
        "LEDGER_ORIGIN",
        None,
        "The name under which the ledger's checkpoints are signed, such as example.com/ledger. The first "
        "key keeps it forever.",
        otherwise="the first of `ALLOWED_HOSTS`, and `/ledger`",
        read=read_origin,
    ),
    words(
        "WITNESSES",
        None,
        "The witnesses to which each checkpoint is offered: for each its key, a space, and its address.",
        otherwise="none",
        read=read_witness,
    ),
    text(
        "WITNESS_NAME",
        "",
        "The name of the witness that `tickwire-server witness` is; its key keeps it.",
        read=partial(read_origin, variable="WITNESS_NAME"),
    ),
    words(
        "WITNESSED_LOGS",
        None,
        "The public keys of the logs that this witness follows, as their `/ledger/key` shows them.",
        otherwise="none",
        read=read_log,
    ),
    "The market",
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
    whole(
        "TICKS_HOURS",
        26,
        "For how many hours accepted ticks can be fetched; two are for the night that archives them.",
        lowest=24,
    ),
    whole(
        "TICKS_MB",
        8_000,
        "The most megabytes that they take in `VAR_DIR`; the oldest go first. A million ticks take 44.",
        lowest=1,
    ),
    whole("DEMO_SEED", 7, "A different number gives a different simulated market."),
    whole(
        "DEMO_DAYS",
        8,
        "For how many days the demo's past has 1m candles when it is made.",
        lowest=8,
        highest=90,
    ),
    whole(
        "DEMO_RATE",
        0,
        "Ticks a second of the whole simulated market, for load tests; 0 is a realistic rate.",
        highest=50_000,
    ),
    "Feeds",
    secret("OANDA_TOKEN", "", "The token of an OANDA account."),
    text("OANDA_ACCOUNT", "", "The number of that account; without both, OANDA is not contacted."),
    text("OANDA_STREAM_URL", "https://stream-fxpractice.oanda.com", "OANDA's prices.", begins=HTTP),
    text("OANDA_REST_URL", "https://api-fxpractice.oanda.com", "OANDA's history.", begins=HTTP),
    text("KRAKEN_WS_URL", "wss://ws.kraken.com/v2", "Kraken's prices.", begins=WEBSOCKET),
    text("KRAKEN_REST_URL", "https://api.kraken.com", "Kraken's history.", begins=HTTP),
    text("BINANCE_WS_URL", "wss://data-stream.binance.vision", "Binance's prices.", begins=WEBSOCKET),
    text("BINANCE_REST_URL", "https://data-api.binance.vision", "Binance's history.", begins=HTTP),
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
    "The archive",
    switch("ARCHIVE", True, "Keeps accepted ticks and closed minutes as files; needs the extra `archive`."),
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
        begins=HTTP,
        otherwise="Amazon's",
    ),
    text("ARCHIVE_S3_REGION", "", "The bucket's region, such as eu-central-1."),
    text(
        "ARCHIVE_S3_KEY_ID",
        "",
        "The ID of an access key; without one, it is looked up where Amazon's tools look for it.",
    ),
    secret("ARCHIVE_S3_SECRET", "", "The secret of that access key."),
    whole(
        "ARCHIVE_DAYS",
        0,
        "For how many days its files are kept, counted back from the newest; 0 means forever.",
    ),
    "News and models",
    switch("NEWS_POLLING", True, "0 leaves polling the news sources to `tickwire-server poll-news`."),
    text("SENTIMENT_MODEL", "", "The model that scores headlines; empty means the built-in one."),
    text("ONNX_MODEL_DIR", "", "A folder with model.onnx, tokenizer.json and config.json."),
    text(
        "OPENAI_BASE_URL", "https://api.openai.com/v1", "Any endpoint compatible with OpenAI's.", begins=HTTP
    ),
    text("OPENAI_MODEL", "", "The model to use there; without it, the endpoint is not used."),
    secret("OPENAI_API_KEY", "", "The key for that endpoint; it may be empty."),
    text(
        "ANTHROPIC_BASE_URL",
        "https://api.anthropic.com",
        "Any endpoint compatible with Anthropic's.",
        begins=HTTP,
    ),
    text("ANTHROPIC_MODEL", "", "The model to use there; without it, the endpoint is not used."),
    secret("ANTHROPIC_API_KEY", "", "The key for that endpoint."),
    number(
        "LANGUAGE_TIMEOUT_S", 20.0, "The maximum number of seconds that a whole call to a model may take."
    ),
    whole("LANGUAGE_DAILY_BUDGET", 500, "Calls to each model per UTC day, over all processes."),
    "Metrics and logs",
    secret("METRICS_TOKEN", "", "The bearer token with which `/metrics` can be read; none closes it."),
    whole(
        "METRICS_PORT",
        0,
        "A separate port of `serve` for metrics and probes; 0 means none. If it is taken, the next free "
        "port is used, or in production none.",
        highest=HIGHEST_PORT,
    ),
    whole("ENGINE_PORT", 0, "The same for `engine`; 0 means none.", highest=HIGHEST_PORT),
    text(
        "METRICS_HOST",
        "127.0.0.1",
        "The address on which these ports listen.",
        read=partial(read_own_host, variable="METRICS_HOST"),
    ),
    switch(
        "METRICS_PER_SYMBOL",
        False,
        "Adds the figures of each instrument to the metrics: 0.8 KB for each at every scrape.",
    ),
    text(
        "LOG_LEVEL",
        "INFO",
        "The lowest level that is logged.",
        among=("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"),
    ),
    text(
        "LOG_FORMAT",
        None,
        "Lines of JSON, or lines that are easy to read.",
        among=("json", "text"),
        otherwise="`json` in production, else `text`",
    ),
    switch("ACCESS_LOG", False, "Also logs successful requests to `/api` and `/ingest`."),
    whole(
        "SLOW_REQUEST_MS", 1_000, "A request that takes at least this long is logged as slow; 0 logs none."
    ),
)

VARIABLES = {each.name: each for each in TABLE if isinstance(each, Variable)}
