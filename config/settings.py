"""All settings. The variables of the environment are listed in config/environment/variables.py."""

import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured
from django.templatetags.static import static

from core.redis.urls import channel_layer

from .environment import BASE_DIR, env, on_postgresql, on_sqlite, read_database_url, var_dir
from .installation import DATABASE, known_secret

VAR_DIR = var_dir()

PRODUCTION = env.switch("PRODUCTION")
DEMO = env.switch("DEMO", otherwise=not PRODUCTION)
DEBUG = env.switch("DEBUG")
PUBLIC_TERMINAL = env.switch("PUBLIC_TERMINAL", otherwise=DEMO)

NOTIFY_SOCKET = env.text("NOTIFY_SOCKET")
SECRET_KEY = env.text("SECRET_KEY") or known_secret(VAR_DIR)
# What they signed remains valid until they are dropped; `rotate_secrets` says when nothing needs them.
SECRET_KEY_FALLBACKS = env.words("SECRET_KEY_FALLBACKS")
KEY_PEPPER = env.text("KEY_PEPPER") or (f"pepper:{SECRET_KEY}" if SECRET_KEY else "")
KEY_PEPPER_FALLBACKS = env.words(
    "KEY_PEPPER_FALLBACKS",
    [] if env.text("KEY_PEPPER") else [f"pepper:{secret}" for secret in SECRET_KEY_FALLBACKS],
)

HOST = env.text("HOST")
PORT = env.whole("PORT")
LOOPBACK_HOSTS = ["localhost", "127.0.0.1", "[::1]"]
EVERYWHERE = ("0.0.0.0", "::")  # noqa: S104 - compared with, not bound to
ALLOWED_HOSTS = env.words("ALLOWED_HOSTS", LOOPBACK_HOSTS + [HOST] * (HOST not in EVERYWHERE))
CSRF_TRUSTED_ORIGINS = env.words("CSRF_TRUSTED_ORIGINS", [])
TRUSTED_PROXIES = env.text("TRUSTED_PROXIES")
# HTTP and streams together, to one process; 0 is no limit. Trusted proxies and loopback may have more.
CONNECTIONS_PER_ADDRESS = env.whole("CONNECTIONS_PER_ADDRESS")
CONNECTIONS_CAP_LOOPBACK = env.switch("CONNECTIONS_CAP_LOOPBACK")
# In production a key is refused if a proxy says that it came over plain HTTP.
ALLOW_PLAIN_HTTP = env.switch("ALLOW_PLAIN_HTTP")
# After SIGTERM, /readyz answers 503 for this long before the port closes, so that a proxy notices.
DRAIN_S = env.number("DRAIN_S", 5.0 if PRODUCTION else 0.0)
# After that, the longest time that a process may take to stop.
STOP_WITHIN_S = env.number("STOP_WITHIN_S")
# Read by core/deadlines.py.
DEADLINES_TIMES = env.number("DEADLINES_TIMES")

# The figures for Prometheus are at /metrics with this token, or on a port that no proxy forwards; 0 is none.
METRICS_TOKEN = env.text("METRICS_TOKEN")
METRICS_PORT = env.whole("METRICS_PORT")
ENGINE_PORT = env.whole("ENGINE_PORT")
METRICS_HOST = env.text("METRICS_HOST")
METRICS_PER_SYMBOL = env.switch("METRICS_PER_SYMBOL")

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
    "allauth",
    "allauth.account",
    "allauth.mfa",
    "allauth.usersessions",
    "csp",
    "transparency",
    "accounts",
    "instruments",
    "market",
    "signals_feed",
    "news",
    "status",
    "analysis",
    "archive",
    "pages",
    "demo",
    "operations",
    "config.apps.ConfigApp",
]

# None of these runs for /api, whose views have an asynchronous base of their own (core/viewset.py).
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
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
            "libraries": {
                "commands": "pages.template_tags",
                "contact": "pages.template_tags",
                "figures": "signals_feed.figures",
                "link_preview": "pages.template_tags",
                "settings_sections": "accounts.panel.sections",
                "breadcrumbs": "config.back_office_pages",
            },
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
API_THREADS = env.whole("API_THREADS")
PAGE_THREADS = env.whole("PAGE_THREADS")

DATABASE_FILE = quote(str(VAR_DIR / DATABASE))
database = env.parsed("DATABASE_URL") or read_database_url(f"sqlite:///{DATABASE_FILE}")
DATABASES: dict[str, dict[str, Any]] = {
    "default": on_sqlite(database, str(VAR_DIR / f"test-{os.getpid()}.sqlite3"))
    if database["ENGINE"] == "django.db.backends.sqlite3"
    else on_postgresql(
        database,
        connections=env.whole("DATABASE_POOL", API_THREADS + PAGE_THREADS + 4),
        idle_transaction_s=env.number("DATABASE_IDLE_TRANSACTION_S"),
        pooler=env.text("DATABASE_POOLER"),
        times=DEADLINES_TIMES,
    )
}
# While the database is away, known keys and open streams work for this long, and a revocation may be as late.
KEYS_TRUSTED_FOR_S = env.number("KEYS_TRUSTED_FOR_S")
# The longest that a migration waits for a table in use, because all later queries wait behind it.
MIGRATION_LOCK_MS = env.whole("MIGRATION_LOCK_MS")
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

# Attempts to log in and used codes: in memory they would count for one process only. It is large, because
# what a full cache drops could be tried again.
CACHES = {
    "default": {
        "BACKEND": "django.core.cache.backends.db.DatabaseCache",
        "LOCATION": "accounts_attempt",
        "OPTIONS": {"MAX_ENTRIES": 50_000},
    }
}

REDIS_URL = env.text("REDIS_URL")
REDIS_PREFIX = env.text("REDIS_PREFIX")
# Only wake-ups between processes: ticks never pass it, and the outbox has what it loses.
CHANNEL_LAYERS = {"default": channel_layer(REDIS_URL, REDIS_PREFIX, within_s=0.5 * DEADLINES_TIMES)}
# A Redis of its own for the market's ticks, and a replica of it from which the processes here read.
BUS_REDIS_URL, BUS_REPLICA_URL = env.text("BUS_REDIS_URL"), env.text("BUS_REPLICA_URL")
if (BUS_REDIS_URL or BUS_REPLICA_URL) and not REDIS_URL:
    raise ImproperlyConfigured("BUS_REDIS_URL and BUS_REPLICA_URL stand beside REDIS_URL: set that too.")

# The log of the ledger

# The name of the log, which its first key keeps. Empty is the public host.
LEDGER_ORIGIN = env.text("LEDGER_ORIGIN")
# Each checkpoint is offered to them, and they cosign it.
WITNESSES = env.parsed("WITNESSES") or []
# The name of the command `witness`, and the keys of the logs that it follows.
WITNESS_NAME = env.text("WITNESS_NAME")
WITNESSED_LOGS = env.parsed("WITNESSED_LOGS") or []

# The market

# For each publisher; 0 is no limit.
PUBLICATIONS_PER_MINUTE = env.whole("PUBLICATIONS_PER_MINUTE")
ACTIVE_SIGNALS_PER_PUBLISHER = env.whole("ACTIVE_SIGNALS_PER_PUBLISHER")
DEMO_SEED = env.whole("DEMO_SEED")
DEMO_DAYS = env.whole("DEMO_DAYS")
CANDLE_PRICE = env.text("CANDLE_PRICE")
# How long after the end of its minute a tick may come, unless a later one came first.
CLOSE_GRACE_MS = env.whole("CLOSE_GRACE_MS")
# The shortest wait between a request and its fill.
FILL_AFTER_MS = env.whole("FILL_AFTER_MS")
# Keeps the market's time steady when the machine's clock is set. Off only in tests that move that clock.
STEADY_CLOCK = env.switch("STEADY_CLOCK")

# The feeds. An instrument names those that serve it, as its source and its fallback.

OANDA_TOKEN = env.text("OANDA_TOKEN")
OANDA_ACCOUNT = env.text("OANDA_ACCOUNT")
OANDA_STREAM_URL = env.text("OANDA_STREAM_URL")
OANDA_REST_URL = env.text("OANDA_REST_URL")
KRAKEN_WS_URL = env.text("KRAKEN_WS_URL")
KRAKEN_REST_URL = env.text("KRAKEN_REST_URL")
BINANCE_WS_URL = env.text("BINANCE_WS_URL")
BINANCE_REST_URL = env.text("BINANCE_REST_URL")
# The venues' own. Prices from other addresses are not attributed to them.
BUILT_IN_ADDRESSES = {
    name: env.default(name)
    for name in (
        *("OANDA_STREAM_URL", "OANDA_REST_URL", "KRAKEN_WS_URL", "KRAKEN_REST_URL"),
        *("BINANCE_WS_URL", "BINANCE_REST_URL"),
    )
}
# Files such as SYMBOL.csv, played as if they came now: 1 is real speed, 10 is ten times as fast.
REPLAY_DIR = Path(env.text("REPLAY_DIR", str(VAR_DIR / "replay")))
REPLAY_SPEED = env.number("REPLAY_SPEED")
# For load tests: the ticks per second of the simulated market, up to 50,000, instead of a lifelike number.
DEMO_RATE = env.whole("DEMO_RATE")

# For how many days candles are kept, by timeframe; 0 is for ever.
CANDLE_DAYS = {
    "1m": env.whole("CANDLE_DAYS_1M"),
    "5m": env.whole("CANDLE_DAYS_5M"),
    "15m": env.whole("CANDLE_DAYS_15M"),
    "1h": env.whole("CANDLE_DAYS_1H"),
    "4h": env.whole("CANDLE_DAYS_4H"),
    "1d": env.whole("CANDLE_DAYS_1D"),
}

# The last accepted ticks, for REST: for how long they are kept, and the most that they take.
TICKS_HOURS = env.whole("TICKS_HOURS")
TICKS_MB = env.whole("TICKS_MB")

# Accepted ticks and closed minutes as files, a day each; 0 days is for ever.
ARCHIVE = env.switch("ARCHIVE")
ARCHIVE_DIR = VAR_DIR / env.text("ARCHIVE_DIR", "archive")
ARCHIVE_DAYS = env.whole("ARCHIVE_DAYS")
# Stored in a bucket instead of on disk, of Amazon S3 or a compatible store: its name and a prefix.
ARCHIVE_S3_URL: tuple[str, str] | None = env.parsed("ARCHIVE_S3_URL")
ARCHIVE_S3_ENDPOINT = env.text("ARCHIVE_S3_ENDPOINT")
ARCHIVE_S3_REGION = env.text("ARCHIVE_S3_REGION")
ARCHIVE_S3_KEY_ID = env.text("ARCHIVE_S3_KEY_ID")
ARCHIVE_S3_SECRET = env.text("ARCHIVE_S3_SECRET")

# Models that score headlines and write summaries besides the built-in one. None is used unless it is named.
SENTIMENT_MODEL = env.text("SENTIMENT_MODEL")
# A directory with model.onnx, tokenizer.json and config.json, for which the extra `onnx` is needed.
ONNX_MODEL_DIR = env.text("ONNX_MODEL_DIR")
LANGUAGE_LIMITS = {
    "timeout_s": env.number("LANGUAGE_TIMEOUT_S"),
    "daily_budget": env.whole("LANGUAGE_DAILY_BUDGET"),
}
LANGUAGE_ENDPOINTS: list[dict[str, Any]] = [
    {
        "protocol": "openai",
        "base_url": env.text("OPENAI_BASE_URL"),
        "model": env.text("OPENAI_MODEL"),
        "key": env.text("OPENAI_API_KEY"),
        **LANGUAGE_LIMITS,
    },
    {
        "protocol": "anthropic",
        "base_url": env.text("ANTHROPIC_BASE_URL"),
        "model": env.text("ANTHROPIC_MODEL"),
        "key": env.text("ANTHROPIC_API_KEY"),
        **LANGUAGE_LIMITS,
    },
]

# The sources of news are rows. Each process asks those that are due, unless `poll_news` does it from outside.
NEWS_POLLING = env.switch("NEWS_POLLING")
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
# The service itself acts under these names; those of operators contain a blank.
ACCOUNT_USERNAME_BLACKLIST = ["demo", "market", "operator", "staff", "support", "system", "tickwire"]
ACCOUNT_SIGNUP_FIELDS = ["username*", "email*", "password1*", "password2*"]
vars().update(env.parsed("EMAIL_URL"))
# Otherwise the pages that need mails are closed, and addresses need no confirmation.
MAILS_ARE_SENT = not env.parsed("EMAIL_URL")["EMAIL_BACKEND"].endswith("dummy.EmailBackend")
ACCOUNT_EMAIL_VERIFICATION = "none" if not MAILS_ARE_SENT else "mandatory" if PRODUCTION else "optional"
# A mail when the password, an address or a second factor changes, which a stranger may have done.
ACCOUNT_EMAIL_NOTIFICATIONS = MAILS_ARE_SENT
# An address can reset the password, so an open session alone may not add one.
ACCOUNT_REAUTHENTICATION_REQUIRED = True
ACCOUNT_RATE_LIMITS = {"login_failed": "5/900s/key", "login_failed_of_account": "100/h/key"}
ACCOUNT_RATE_LIMITS["export_account"] = "6/h/user"
ACCOUNT_RATE_LIMITS["change_factors"] = "20/900s/user,100/d/user"
# Public forms that send a mail to any address. Counted by network address, or by /64.
ACCOUNT_RATE_LIMITS["signup"] = f"20/m/ip,{env.whole('SIGNUPS_A_DAY')}/d/ip"
ACCOUNT_RATE_LIMITS["reset_password"] = "20/m/ip,200/d/ip,5/m/key"  # noqa: S105 - a limit
# The days after which users who never confirmed an address are deleted; 0 is never.
UNCONFIRMED_KEPT_DAYS = env.whole("UNCONFIRMED_KEPT_DAYS")
# A mailed link opens an account even while its password is locked. A second factor is still asked for.
ACCOUNT_LOGIN_ON_PASSWORD_RESET = True
ACCOUNT_ADAPTER = "accounts.login.adapters.AccountAdapter"
MFA_ADAPTER = "accounts.login.adapters.FactorAdapter"
MFA_SUPPORTED_TYPES = ["totp", "webauthn", "recovery_codes"]
MFA_PASSKEY_LOGIN_ENABLED = True
MFA_TOTP_ISSUER = "Tickwire"
# Outside production addresses need no confirmation, and there is no certificate on loopback.
MFA_WEBAUTHN_ALLOW_INSECURE_ORIGIN = not PRODUCTION
MFA_ALLOW_UNVERIFIED_EMAIL = not (PRODUCTION and MAILS_ARE_SENT)
# The seconds to wait for a mail server that does not answer.
EMAIL_TIMEOUT = env.whole("EMAIL_TIMEOUT")
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL")
# Where users reach the operator; empty if there is no address.
CONTACT_EMAIL = env.parsed("CONTACT_EMAIL")

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
    "DEFAULT_AUTHENTICATION_CLASSES": ["accounts.authentication.ApiKeyAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": [],
    "DEFAULT_THROTTLE_CLASSES": ["accounts.authentication.WindowThrottle"],
    "DEFAULT_RENDERER_CLASSES": ["core.contract.answers.JSONRenderer"],
    "DEFAULT_CONTENT_NEGOTIATION_CLASS": "core.contract.negotiation.FirstOffered",
    "DEFAULT_PARSER_CLASSES": [],
    "EXCEPTION_HANDLER": "core.contract.errors.exception_handler",
    "DEFAULT_SCHEMA_CLASS": "core.contract.openapi.ApiSchema",
    "UNAUTHENTICATED_USER": None,
}

# Pages

LANGUAGE_CODE = "en-gb"
USE_I18N = False
TIME_ZONE = "UTC"
FORMAT_MODULE_PATH = "config.formats"
STATIC_URL = "/static/"
# Where `collectstatic` puts them. An image has them outside the data directory.
STATIC_ROOT = Path(env.text("STATIC_ROOT", str(VAR_DIR / "static")))
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

LOG_FORMAT = env.text("LOG_FORMAT", "json" if PRODUCTION else "text")
LOG_LEVEL = env.text("LOG_LEVEL")
ACCESS_LOG = env.switch("ACCESS_LOG")
SLOW_REQUEST_MS = env.whole("SLOW_REQUEST_MS")
LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"()": "config.logging.line_formatter", "json": LOG_FORMAT == "json"},
    },
    "filters": {
        "unavailable": {"()": "core.fault_log.FaultsOfPages"},
    },
    "handlers": {
        "stderr": {"class": "logging.StreamHandler", "formatter": "line"},
        "refusals": {"class": "core.logs.ReasonOfRefusal"},
    },
    "root": {"handlers": ["stderr"], "level": LOG_LEVEL},
    "loggers": {
        "django.request": {"level": "ERROR", "filters": ["unavailable"]},
        "django.security": {"handlers": ["refusals"], "propagate": False},
        # By default it has a handler of its own, which writes whole addresses.
        "django.server": {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
        "django": {"handlers": [], "level": "INFO", "propagate": True},
        "uvicorn.error": {"level": "WARNING"},
        "daphne": {"level": "WARNING"},
        # It repeats each second that Redis is away; core.events says it once.
        "channels_redis": {"level": "CRITICAL"},
        # It warns of each failed attempt; the request or command that needs a connection says it once.
        "psycopg.pool": {"level": "ERROR"},
        # It logs the address of each request, and an address may name an account.
        "httpx2": {"level": "WARNING"},
    },
}

# The look of the back office, the forms of login, and /openapi.json

UNFOLD: dict[str, Any] = {
    "SITE_TITLE": "Tickwire back office",
    "SITE_HEADER": "Tickwire",
    "SITE_SUBHEADER": "Back office",
    "SITE_ICON": lambda request: static("tickwire.svg"),
    "SITE_FAVICONS": [
        {"rel": "icon", "type": "image/svg+xml", "href": lambda request: static("tickwire.svg")}
    ],
    "SHOW_BACK_BUTTON": True,
    "STYLES": [
        lambda request: static("site/tokens.css"),
        lambda request: static("accounts/back_office.css"),
    ],
    "SCRIPTS": [lambda request: static("accounts/back_office.js")],
    "SIDEBAR": {"navigation": "config.back_office_pages.sidebar"},
    "DASHBOARD_CALLBACK": "config.back_office_pages.dashboard",
}

# allauth's forms with the texts of this site.
ACCOUNT_FORMS = {
    "login": "accounts.login.forms.LoginForm",
    "signup": "accounts.login.forms.SignupForm",
    "add_email": "accounts.login.forms.AddEmailForm",
    "change_password": "accounts.login.forms.ChangePasswordForm",
    "set_password": "accounts.login.forms.SetPasswordForm",
    "reset_password": "accounts.login.forms.ResetPasswordForm",
    "reset_password_from_key": "accounts.login.forms.ResetPasswordKeyForm",
    "reauthenticate": "accounts.login.forms.ReauthenticateForm",
}
MFA_FORMS = {
    "authenticate": "accounts.login.pages.CodeForm",
    "reauthenticate": "accounts.login.pages.ConfirmByCodeForm",
    "activate_totp": "accounts.login.pages.ActivateAppForm",
    "add_webauthn": "accounts.login.pages.AddPasskeyForm",
    "edit_webauthn": "accounts.login.pages.RenamePasskeyForm",
}

SPECTACULAR_SETTINGS: dict[str, Any] = {
    "OAS_VERSION": "3.1.1",
    "TITLE": "Tickwire API",
    "VERSION": "1",
    "SERVERS": [
        {"url": "/", "description": "The server this document came from"},
    ],
    "TAGS": [
        {"name": "Market", "description": "Instruments, candles and quotes."},
        {"name": "Signals", "description": "Published trade signals and their results."},
        {"name": "News", "description": "Curated news with sentiment."},
        {
            "name": "Analysis",
            "description": "What candles, news, order flow and signals say when taken together.",
        },
        {"name": "Archive", "description": "Past days as files: ticks, candles and their manifests."},
        {"name": "Service", "description": "The running service, and what is left of your limits."},
    ],
    "SCHEMA_PATH_PREFIX": "/api",
    # Docstrings are for maintainers; the public reads help texts and the `details` of an action.
    "DISABLE_DOCSTRING_DESCRIPTIONS": True,
    "SORT_OPERATIONS": False,
    "SORT_OPERATION_PARAMETERS": False,
    "PREPROCESSING_HOOKS": ["core.contract.openapi.keep_api_paths"],
    "POSTPROCESSING_HOOKS": ["core.contract.openapi.complete"],
}
