"""Settings of the DRF peer: what `startproject` writes, on the database that the benchmark filled."""

import os

SECRET_KEY = "benchmark"
ALLOWED_HOSTS = ["127.0.0.1"]
INSTALLED_APPS = [
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "rest_framework",
    "accounts",
    "instruments",
    "market",
    "signals_feed",
    "news",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "tests.nightly.benchmarks.rest.peers.drf_urls"
AUTH_USER_MODEL = "accounts.User"
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": os.environ["BENCH_DATABASE"],
        "CONN_MAX_AGE": None,
    }
}
USE_TZ = True
REST_FRAMEWORK = {"DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"]}
KEY_PEPPER = os.environ["BENCH_PEPPER"]
API_THREADS = 1
REDIS_URL = ""
