"""What the tutorial of Channels sets, https://channels.readthedocs.io/en/stable/tutorial/."""

import os

SECRET_KEY = "benchmark"
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = ["daphne"]
ASGI_APPLICATION = "tests.nightly.benchmarks.streams.peers.channels_tutorial.asgi.application"
REDIS_URL = os.environ.get("REDIS_URL", "")
CHANNEL_LAYERS = {
    "default": {
        "BACKEND": "channels_redis.pubsub.RedisPubSubChannelLayer",
        "CONFIG": {"hosts": [REDIS_URL]},
    }
    if REDIS_URL
    else {"BACKEND": "channels.layers.InMemoryChannelLayer"}
}
