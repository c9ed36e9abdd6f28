"""The least that django-bolt needs."""

SECRET_KEY = "benchmark"
ALLOWED_HOSTS = ["127.0.0.1"]
INSTALLED_APPS = ["django.contrib.contenttypes", "django.contrib.auth", "django_bolt"]
DATABASES = {"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}}
ROOT_URLCONF = "tests.nightly.benchmarks.rest.peers.bolt.urls"
BOLT_API = ["tests.nightly.benchmarks.rest.peers.bolt.app:api"]
USE_TZ = True
