"""Redis: whether it answers, keeps what it is given, and takes writes."""

import time
from collections.abc import Iterator
from typing import Any

from django.conf import settings
from redis.exceptions import NoPermissionError, RedisError

from core.redis.connections import connect_redis_of_threads

from .clocks import compare
from .diagnosis import Diagnosis, fail, ok, warn

ABOUT = "redis"
PATIENCE_S = 3.0
# What the tests run on; nobody has tried an older one.
OLDEST = (6, 2)
KEEPS_ALL = "noeviction"
RUNS = "Check {variable}, that the server runs, and that this machine may reach it."
REPLICA = "BUS_REPLICA_URL"


def check_redis() -> Iterator[Diagnosis]:
    if not settings.REDIS_URL:
        yield ok(ABOUT, "None is used, so there may be one process; several need REDIS_URL.")
    for variable in ("REDIS_URL", "BUS_REDIS_URL", REPLICA):
        if url := getattr(settings, variable):
            yield from _check_server(variable, url)


def _check_server(variable: str, url: str) -> Iterator[Diagnosis]:
    # The client's types name both its synchronous and its asynchronous answers.
    redis: Any = connect_redis_of_threads(url, socket_timeout=PATIENCE_S, socket_connect_timeout=PATIENCE_S)
    try:
        with redis:
            before = time.time()
            seconds, microseconds = redis.time()
            after = time.time()
            facts = redis.info()
    except NoPermissionError as error:
        says = f"Redis answers, but not what is asked of it ({variable}): {str(error).rstrip('.')}."
        yield warn(ABOUT, says, "Allow the user of this address the commands TIME and INFO.")
    except (RedisError, OSError) as error:
        says = f"Redis does not answer ({variable}): {str(error).rstrip('.')}."
        yield fail(ABOUT, says, RUNS.format(variable=variable))
    else:
        yield judge_version(str(facts.get("redis_version", "0")))
        yield compare(ABOUT, "Redis", seconds + microseconds / 1e6, before, after)
        if variable != REPLICA:
            yield from _memory(facts)
            yield from _writes(variable, facts)


def judge_version(version: str) -> Diagnosis:
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < OLDEST:
        return fail(
            ABOUT,
            f"Redis {version} is older than what Tickwire is tested with.",
            "Upgrade it to 6.2 or later.",
        )
    return ok(ABOUT, f"Redis {version} answers.")


def _memory(facts: dict[str, Any]) -> Iterator[Diagnosis]:
    policy, most = str(facts.get("maxmemory_policy", "")), int(facts.get("maxmemory", 0))
    if policy != KEEPS_ALL:
        says = f"Redis may drop what it holds when its memory is full (maxmemory-policy {policy}): "
        says += "limits and stream slots would be forgotten."
        fix = "redis-cli CONFIG SET maxmemory-policy noeviction, and the same in redis.conf."
        # Without a bound on its memory it never comes to that; the bound may be set tomorrow.
        yield fail(ABOUT, says, fix) if most else warn(ABOUT, says, fix)
    used = int(facts.get("used_memory", 0))
    if most and used > 0.9 * most:
        says = f"Redis has used {used / most:.0%} of its memory (maxmemory)"
        if used < most:
            fix = "Raise maxmemory. A full Redis refuses writes, and prices stand still."
            yield warn(ABOUT, f"{says}.", fix)
        else:
            fix = "Raise maxmemory, or remove what else is in it: redis-cli --bigkeys names the largest."
            yield fail(ABOUT, f"{says}: it is full and refuses writes, and prices stand still.", fix)


def _writes(variable: str, facts: dict[str, Any]) -> Iterator[Diagnosis]:
    if facts.get("role") != "master":
        yield fail(ABOUT, f"{variable} names a replica, which takes no writes.", "Name the primary.")
        return
    failed = [
        name for name in ("rdb_last_bgsave_status", "aof_last_write_status") if facts.get(name) == "err"
    ]
    if failed:
        says = f"Redis could not write to its disk ({', '.join(failed)}), and may refuse writes for it."
        yield fail(ABOUT, says, "Look at its log and its disk.")
    elif facts.get("aof_enabled"):
        yield ok(ABOUT, "It takes writes and keeps them over a restart (appendonly).")
    else:
        yield ok(
            ABOUT,
            "It takes writes. A restart loses what is newer than its last snapshot; processes send it again.",
        )
