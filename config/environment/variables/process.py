from ..addresses import read_host, read_proxies
from ..variable import VariableGroup, number, secret, switch, text, whole, words

HIGHEST_PORT = 65_535

PROCESS = VariableGroup(
    "The installation",
    (
        switch("PRODUCTION", False, "Refuses to start with what is unsafe, and closes what is for the demo."),
        switch(
            "DEMO",
            None,
            "Fills the service with instruments, a past, people and prices that are simulated. The same for"
            " the service and every command beside it.",
            otherwise="1, in production 0",
        ),
        switch("DEBUG", False, "Shows Django's error pages, which contain code and values."),
        text(
            "VAR_DIR",
            None,
            "The folder for the database file, the secret and whatever else this installation keeps.",
            otherwise="in a checkout `var` beside the code, installed `tickwire` in `XDG_DATA_HOME`",
        ),
        text(
            "XDG_DATA_HOME",
            None,
            "The folder for the data of all programs; only an absolute path counts.",
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
            "Set by systemd for units of Type=notify: it hears there that the service is ready.",
        ),
        secret(
            "SECRET_KEY",
            "Signs sessions and links.",
            otherwise="made at the first start, in `VAR_DIR/secret`",
            default=None,
            is_needed=True,
        ),
        words(
            "SECRET_KEY_FALLBACKS",
            (),
            "Previous keys, whose sessions and links still count.",
            is_secret=True,
        ),
        secret(
            "KEY_PEPPER",
            "Hashes API keys and seals second factors, so that the database alone opens nothing.",
            otherwise="follows from `SECRET_KEY`",
            default=None,
            is_needed=True,
        ),
        words(
            "KEY_PEPPER_FALLBACKS",
            None,
            "Previous peppers, whose API keys and second factors still count.",
            otherwise="follow from `SECRET_KEY_FALLBACKS` where the pepper follows from `SECRET_KEY`",
            is_secret=True,
        ),
    ),
)

HTTP = VariableGroup(
    "HTTP",
    (
        text("HOST", "127.0.0.1", "The address on which `serve` listens."),
        whole("PORT", 8000, "The port on which `serve` listens.", highest=HIGHEST_PORT),
        words(
            "ALLOWED_HOSTS",
            None,
            "The names under which the service is reached; a request for another one is refused.",
            otherwise="the names of loopback, and `HOST`",
            is_needed=True,
            read=read_host,
        ),
        words(
            "CSRF_TRUSTED_ORIGINS",
            (),
            "Pages of other hosts that may send forms, such as https://example.com.",
        ),
        text(
            "TRUSTED_PROXIES",
            "",
            "Addresses and networks of proxies whose X-Forwarded-For and X-Forwarded-Proto are believed.",
            read=read_proxies,
        ),
        whole(
            "CONNECTIONS_PER_ADDRESS",
            200,
            "Connections that one address may hold to one process; 0 is no limit.",
        ),
        switch("CONNECTIONS_CAP_LOOPBACK", False, "Counts connections from this machine as well."),
        switch(
            "ALLOW_PLAIN_HTTP", False, "Accepts keys in production that came to the proxy over plain HTTP."
        ),
        number(
            "DRAIN_S",
            None,
            "How many seconds after SIGTERM `/readyz` answers 503 before the port closes.",
            otherwise="5 in production, else 0",
        ),
        number("STOP_WITHIN_S", 20.0, "The most seconds that a process then takes to end, whatever hangs."),
        whole("API_THREADS", 8, "Threads of a process in which the API asks the database.", lowest=1),
        whole("PAGE_THREADS", 6, "Threads of a process in which pages are made.", lowest=1),
    ),
)
