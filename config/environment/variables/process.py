from ..addresses import read_host, read_own_host, read_page_origin, read_proxies
from ..variable import VariableGroup, number, secret, switch, text, whole, words

HIGHEST_PORT = 65_535

PROCESS = VariableGroup(
    "The installation",
    (
        switch("PRODUCTION", False, "Does not start with unsafe settings, and closes demo features."),
        switch(
            "DEMO",
            None,
            "Fills the service with simulated instruments, history, people and prices. Use the same value for"
            " the service and for every command beside it.",
            otherwise="1, in production 0",
        ),
        switch(
            "PUBLIC_TERMINAL",
            None,
            "Opens the terminal, and the live prices of the front page, to visitors without an account. Your"
            " feeds' licences must permit it.",
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
            "Signs sessions and links.",
            otherwise="generated at the first start, in `VAR_DIR/secret`",
            default=None,
            is_needed=True,
        ),
        words(
            "SECRET_KEY_FALLBACKS",
            (),
            "Previous keys, whose sessions and links remain valid.",
            is_secret=True,
        ),
        secret(
            "KEY_PEPPER",
            "Hashes API keys and encrypts second factors, so that the database alone grants no access.",
            otherwise="derived from `SECRET_KEY`",
            default=None,
            is_needed=True,
        ),
        words(
            "KEY_PEPPER_FALLBACKS",
            None,
            "Previous peppers, whose API keys and second factors remain valid.",
            otherwise="derived from `SECRET_KEY_FALLBACKS` if the pepper is derived from `SECRET_KEY`",
            is_secret=True,
        ),
    ),
)

HTTP = VariableGroup(
    "HTTP",
    (
        text("HOST", "127.0.0.1", "The address on which `serve` listens.", read=read_own_host),
        whole("PORT", 8000, "The port on which `serve` listens.", highest=HIGHEST_PORT),
        words(
            "ALLOWED_HOSTS",
            None,
            "The host names of the service; a request for any other name is rejected.",
            otherwise="the loopback names, and `HOST`",
            is_needed=True,
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
        switch(
            "ALLOW_PLAIN_HTTP", False, "In production, accepts keys that reached the proxy over plain HTTP."
        ),
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
            "By how much a process is more patient with Redis, the database, the engine and clients before it"
            " gives up. For very slow machines, and for tests.",
            lowest=1.0,
        ),
        whole("API_THREADS", 8, "Threads per process in which the API queries the database.", lowest=1),
        whole("PAGE_THREADS", 6, "Threads per process in which pages are rendered.", lowest=1),
    ),
)
