"""All settings, read from the environment. The defaults are safe for one developer on loopback."""

import os
from pathlib import Path

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from .environment import (
    BASE_DIR,
    env,
    read_database_url,
    read_proxies,
    read_redis_url,
    session_options,
    var_dir,
)
from .installation import known_secret
from .library_settings import UNFOLD as UNFOLD
from .library_settings import described_at

VAR_DIR = var_dir()

PRODUCTION = env.bool("PRODUCTION", False)
DEMO = env.bool("DEMO", not PRODUCTION)
DEBUG = env.bool("DEBUG", False)

if PRODUCTION:
    needed = ("SECRET_KEY", "KEY_PEPPER", "DATABASE_URL", "REDIS_URL", "ALLOWED_HOSTS")
    missing = [name for name in needed if not os.environ.get(name)]
    if missing:
        raise ImproperlyConfigured(f"PRODUCTION=1 needs these variables: {', '.join(missing)}.")
    if DEMO or DEBUG:
        raise ImproperlyConfigured("PRODUCTION=1 runs without DEMO and DEBUG: unset both.")


SECRET_KEY = env.str("SECRET_KEY", "") or known_secret(VAR_DIR)
KEY_PEPPER = env.str("KEY_PEPPER", "") or (f"pepper:{SECRET_KEY}" if SECRET_KEY else "")

HOST = env.str("HOST", "127.0.0.1")
PORT = env.int("PORT", 8000)
LOOPBACK_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared with, not bound to
ALLOWED_HOSTS = env.list("ALLOWED_HOSTS", default=LOOPBACK_HOSTS + [HOST] * (HOST not in EVERYWHERE))
CSRF_TRUSTED_ORIGINS = env.list("CSRF_TRUSTED_ORIGINS", default=[])
TRUSTED_PROXIES = read_proxies(env.str("TRUSTED_PROXIES", ""))
# HTTP and streams together, to one process; 0 is no limit. Trusted proxies and loopback may have more.
CONNECTIONS_PER_ADDRESS = env.int("CONNECTIONS_PER_ADDRESS", 200)
CONNECTIONS_CAP_LOOPBACK = env.bool("CONNECTIONS_CAP_LOOPBACK", False)
# In production a key is refused if a proxy says that it came over plain HTTP.
ALLOW_PLAIN_HTTP = env.bool("ALLOW_PLAIN_HTTP", False)
# After SIGTERM /readyz answers 503 for so long before the port closes, so that whatever is in front notices.
DRAIN_S = env.float("DRAIN_S", 5.0 if PRODUCTION else 0.0)
# After that a process may take so long to stop.
STOP_WITHIN_S = env.float("STOP_WITHIN_S", 20.0)

# The figures for Prometheus are at /metrics with this token, or on a port that no proxy forwards; 0 is none.
METRICS_TOKEN = env.str("METRICS_TOKEN", "")
METRICS_PORT = env.int("METRICS_PORT", 0)
METRICS_HOST = env.str("METRICS_HOST", "127.0.0.1")

# Apps

INSTALLED_APPS = [
    "serving",
    "unfold.apps.BasicAppConfig",
    "unfold.contrib.filters",
    "config.apps.BackOfficeConfig",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.humanize",
    "channels",
    "rest_framework",
    "drf_spectacular",
    "drf_spectacular_sidecar",
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "csp",
    "accounts",
    "instruments",
    "market",
    "signals_feed",
    "news",
    "status",
    "demo",
    "operations",
    "config.apps.ConfigApp",
]

# None of these runs for /api, whose views have an asynchronous base of their own (accounts/viewset.py).
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "servestatic.middleware.ServeStaticMiddleware",
    "csp.middleware.CSPMiddleware",
    "accounts.login.sessions.SessionsOfStrangers",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "demo.login.DemoLoginsStayOnLoopback",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "allauth.account.middleware.AccountMiddleware",
]

ROOT_URLCONF = "config.urls"
ASGI_APPLICATION = "config.asgi.application"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# Storage

# Threads in which the API asks the database, and threads in which pages are made.
API_THREADS = env.int("API_THREADS", 8)
PAGE_THREADS = env.int("PAGE_THREADS", 6)

DATABASE_URL = env.str("DATABASE_URL", "") or f"sqlite:///{VAR_DIR / 'tickwire.sqlite3'}"
DATABASES = {"default": read_database_url(DATABASE_URL)}
if DATABASES["default"]["ENGINE"] == "django.db.backends.sqlite3":
    DATABASES["default"] |= {
        # The threads that ask are few and stay, so their connections may stay too.
        "CONN_MAX_AGE": None,
        "OPTIONS": {
            "transaction_mode": "IMMEDIATE",
            "timeout": 20,
            "init_command": "PRAGMA journal_mode=WAL; PRAGMA synchronous=NORMAL; PRAGMA mmap_size=268435456;",
        },
        # A file, because a server under test has threads of its own.
        "TEST": {"NAME": str(VAR_DIR / f"test-{os.getpid()}.sqlite3")},
    }
else:
    # Any other CONN_MAX_AGE leaks pooled connections under ASGI.
    DATABASES["default"] |= {
        "CONN_MAX_AGE": 0,
        "OPTIONS": {
            # A host that has vanished is noticed within half a minute instead of hours.
            "connect_timeout": 5,
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            "tcp_user_timeout": 20_000,
            "options": session_options(env.float("DATABASE_IDLE_TRANSACTION_S", 10.0)),
            **DATABASES["default"]["OPTIONS"],
            # One for each thread of the API and of pages, and for those that others must not hold up.
            "pool": {
                "min_size": 1,
                "max_size": env.int("DATABASE_POOL", API_THREADS + PAGE_THREADS + 4),
                "timeout": 2,
                # The next one tries again at once, instead of after pauses that grow to a minute.
                "reconnect_timeout": 1,
            },
        },
    }
# While the database is away, known keys and open streams go on for so long, and a revocation may be as late.
KEYS_TRUSTED_FOR_S = env.float("KEYS_TRUSTED_FOR_S", 900.0)
# A migration may wait for so long for a table that is in use, and whoever comes later waits behind it.
MIGRATION_LOCK_MS = env.int("MIGRATION_LOCK_MS", 1_000)
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Attempts to log in and codes that were used: in the memory of a process they would count for it alone. What
# falls out of a full cache could be tried again, so it is large.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "accounts_attempt",
        "OPTIONS": {"MAX_ENTRIES": 50_000},
    }
}

REDIS_URL = read_redis_url(env.str("REDIS_URL", ""))

# The market

# For each publisher; 0 is no limit.
PUBLICATIONS_PER_MINUTE = env.int("PUBLICATIONS_PER_MINUTE", 10)
ACTIVE_SIGNALS_PER_PUBLISHER = env.int("ACTIVE_SIGNALS_PER_PUBLISHER", 100)
DEMO_SEED = env.int("DEMO_SEED", 7)
CANDLE_PRICE = env.str("CANDLE_PRICE", "bid")
if CANDLE_PRICE not in ("bid", "mid"):
    raise ImproperlyConfigured(f"CANDLE_PRICE is bid or mid, not {CANDLE_PRICE!r}.")
# A tick may come so long after the end of its minute, unless a later one came first.
CLOSE_GRACE_MS = env.int("CLOSE_GRACE_MS", 2_000)
# The market's time stays in order when the machine's clock is set. Off only where tests move that clock.
STEADY_CLOCK = env.bool("STEADY_CLOCK", True)

# The feeds. An instrument names those that serve it, as its source and its fallback.

OANDA_TOKEN = env.str("OANDA_TOKEN", "")
OANDA_ACCOUNT = env.str("OANDA_ACCOUNT", "")
OANDA_STREAM_URL = env.str("OANDA_STREAM_URL", "https://stream-fxpractice.oanda.com")
OANDA_REST_URL = env.str("OANDA_REST_URL", "https://api-fxpractice.oanda.com")
KRAKEN_WS_URL = env.str("KRAKEN_WS_URL", "wss://ws.kraken.com/v2")
KRAKEN_REST_URL = env.str("KRAKEN_REST_URL", "https://api.kraken.com")
BINANCE_WS_URL = env.str("BINANCE_WS_URL", "wss://data-stream.binance.vision")
BINANCE_REST_URL = env.str("BINANCE_REST_URL", "https://data-api.binance.vision")
# Files such as SYMBOL.csv, played as if they came now: 1 is real speed, 10 is ten times as fast.
REPLAY_DIR = Path(env.str("REPLAY_DIR", str(VAR_DIR / "replay")))
REPLAY_SPEED = env.float("REPLAY_SPEED", 1.0)
# For load tests: so many ticks a second of the simulated market, up to 50,000, instead of lifelike ones.
DEMO_RATE = env.int("DEMO_RATE", 0)

# For how many days candles are kept, by timeframe; 0 is for good.
CANDLE_DAYS = {
    timeframe: env.int(f"CANDLE_DAYS_{timeframe.upper()}", days)
    for timeframe, days in (("1m", 400), ("5m", 800), ("15m", 1600), ("1h", 0), ("4h", 0), ("1d", 0))
}

# Models that score headlines and write summaries besides the built-in one. None is asked unless it is named.
SENTIMENT_MODEL = env.str("SENTIMENT_MODEL", "")
# A directory with model.onnx, tokenizer.json and config.json, for which the extra `onnx` is needed.
ONNX_MODEL_DIR = env.str("ONNX_MODEL_DIR", "")
LANGUAGE_ENDPOINTS = [
    {
        "protocol": protocol,
        "base_url": env.str(f"{protocol.upper()}_BASE_URL", base_url),
        "model": env.str(f"{protocol.upper()}_MODEL", ""),
        "key": env.str(f"{protocol.upper()}_API_KEY", ""),
        "timeout_s": env.float("LANGUAGE_TIMEOUT_S", 20.0),
        "daily_budget": env.int("LANGUAGE_DAILY_BUDGET", 500),
    }
    for protocol, base_url in (
        ("openai", "https://api.openai.com/v1"),
        ("anthropic", "https://api.anthropic.com"),
    )
]

# The sources of news are rows. Each process asks those that are due, unless `poll_news` does it from outside.
NEWS_POLLING = env.bool("NEWS_POLLING", True)
# For tests alone, and no variable: otherwise a feed on loopback would be a way into this machine.
NEWS_FEEDS_ON_LOOPBACK = False

# Accounts and logins

AUTH_USER_MODEL = "accounts.User"
AUTHENTICATION_BACKENDS = [
    "allauth.account.auth_backends.AuthenticationBackend",
    "demo.login.DemoLinkBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
LOGIN_URL = "account_login"
LOGIN_REDIRECT_URL = "/settings/keys"
ACCOUNT_LOGOUT_REDIRECT_URL = "account_login"
ACCOUNT_LOGIN_METHODS = {"username", "email"}
ACCOUNT_SIGNUP_FIELDS = ["username*", "email*", "password1*", "password2*"]
ACCOUNT_EMAIL_VERIFICATION = "mandatory" if PRODUCTION else "optional"
# A mail when the password, an address or a second factor changes, which a stranger may have done.
ACCOUNT_EMAIL_NOTIFICATIONS = True
ACCOUNT_RATE_LIMITS = {"login_failed": "5/900s/key", "login_failed_of_account": "100/h/key"}
ACCOUNT_RATE_LIMITS["change_factors"] = "20/900s/user,100/d/user"
# Forms that anybody may fill in, each with a mail to any address. Counted by network address, or by /64.
ACCOUNT_RATE_LIMITS["signup"] = f"20/m/ip,{env.int('SIGNUPS_A_DAY', 100)}/d/ip"
ACCOUNT_RATE_LIMITS["reset_password"] = "20/m/ip,200/d/ip,5/m/key"  # noqa: S105 - a limit
# Users who never confirm an address are deleted after so many days; 0 is never.
UNCONFIRMED_KEPT_DAYS = env.int("UNCONFIRMED_KEPT_DAYS", 7)
# A mailed link opens an account even while its password is locked. A second factor is still asked for.
ACCOUNT_LOGIN_ON_PASSWORD_RESET = True
ACCOUNT_FORMS = {"login": "accounts.login.forms.LoginForm", "signup": "accounts.login.forms.SignupForm"}
ACCOUNT_ADAPTER = "accounts.login.adapters.AccountAdapter"
MFA_ADAPTER = "accounts.login.adapters.FactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_FORMS = {"add_webauthn": "accounts.login.factor_pages.AddPasskeyForm"}
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "Tickwire"
# Outside production addresses need no confirmation, and there is no certificate on loopback.
MFA_ALLOW_UNVERIFIED_EMAIL = MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not PRODUCTION
vars().update(env.email_url("EMAIL_URL", default="consolemail://"))
# A mail waits for so many seconds for a mail server that does not answer.
EMAIL_TIMEOUT = env.int("EMAIL_TIMEOUT", 10)
DEFAULT_FROM_EMAIL = env.str("DEFAULT_FROM_EMAIL", "Tickwire <no-reply@localhost>")

SESSION_ENGINE = "accounts.login.sessions"
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = PRODUCTION
CSRF_COOKIE_HTTPONLY = True
SECURE_SSL_REDIRECT = PRODUCTION
SECURE_HSTS_SECONDS = 31_536_000 if PRODUCTION else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = PRODUCTION
if TRUSTED_PROXIES:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    },
}

# The REST contract

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_SCHEMA_CLASS": "core.contract.openapi_schema.ApiSchema",
    "UNAUTHENTICATED_USER": None,
}

SPECTACULAR_SETTINGS = described_at(PORT)

# Pages

LANGUAGE_CODE = "en-gb"
USE_I18N = False
TIME_ZONE = "UTC"
FORMAT_MODULE_PATH = "config.formats"
STATIC_URL = "/static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
SERVESTATIC_USE_FINDERS = not PRODUCTION
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": (
            "pages.static_files.HashedFiles"
            if PRODUCTION
            else "django.contrib.staticfiles.storage.StaticFilesStorage"
        )
    },
}

# Logging: one line for each event, to standard error

LOG_LEVEL = env.str("LOG_LEVEL", "INFO").upper()
ACCESS_LOG = env.bool("ACCESS_LOG", True)
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "config.logging.line_formatter", "json": PRODUCTION},
    },
    "filters": {
        "strangers": {"()": "config.logging.StrangersLeaveNoTraceback"},
        "unavailable": {"()": "core.fault_log.PagesUnavailable"},
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["strangers"]},
    },
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        "accounts.access": {"level": "INFO" if ACCESS_LOG else "WARNING"},
        "django.request": {"level": "ERROR", "filters": ["unavailable"]},
        # By default it has a handler of its own, which writes whole addresses.
        "django.server": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        "django": {"handlers": [], "level": "INFO", "propagate": True},
        "uvicorn.error": {"level": "WARNING"},
        "daphne": {"level": "WARNING"},
        # It warns of each failed attempt; the request or command that needs a connection says it once.
        "psycopg.pool": {"level": "ERROR"},
    },
}
