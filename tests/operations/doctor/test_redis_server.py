from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pytest_django.fixtures import Settings
from redis import Redis

from operations.doctor.checks import check_redis, judge_version
from tests.patience import wait_until
from tests.programs import services

from .diagnoses import faults, only_fault

pytestmark = pytest.mark.served


@pytest.fixture
def redis(tmp_path: Path, settings: Settings) -> Iterator[Redis]:
    """One that answers, and keeps all that it is given."""
    with services.redis(tmp_path / "redis") as url, Redis.from_url(url) as client:
        settings.REDIS_URL = url
        yield client


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path) -> None:
    (tmp_path / "redis").mkdir()


def ask(redis: Redis, section: str, name: str) -> Any:
    facts: Any = redis.info(section)
    return facts[name]


def test_one_in_order_has_no_fault(redis: Redis) -> None:
    assert faults(check_redis()) == []


def test_redis_that_does_not_answer_is_a_fault(redis: Redis, settings: Settings) -> None:
    redis.config_set("requirepass", "something else")
    says = "Redis does not answer (REDIS_URL): Authentication required."
    assert only_fault(check_redis()) == ("fail", says)
    settings.REDIS_URL = f"redis://127.0.0.1:{services.free_port()}/0"
    level, says = only_fault(check_redis())
    assert level == "fail"
    assert says.startswith("Redis does not answer (REDIS_URL): Error 111 connecting to 127.0.0.1")
    settings.REDIS_URL = ""
    assert faults(check_redis()) == []


@pytest.mark.parametrize(("most", "level"), [("100mb", "fail"), ("0", "warn")])
def test_a_policy_that_drops_what_it_holds_is_told(redis: Redis, most: str, level: str) -> None:
    redis.config_set("maxmemory", most)
    redis.config_set("maxmemory-policy", "volatile-lru")
    found, says = only_fault(check_redis())
    assert found == level
    assert "maxmemory-policy volatile-lru" in says


@pytest.mark.parametrize(("share", "level", "is_full"), [(1.05, "warn", False), (0.95, "fail", True)])
def test_memory_that_runs_out_is_told(redis: Redis, share: float, level: str, is_full: bool) -> None:
    redis.set("filler", b"0" * 10_000_000)
    redis.config_set("maxmemory", int(ask(redis, "memory", "used_memory") * share))
    found, says = only_fault(check_redis())
    assert (found, "of its memory (maxmemory)" in says, "it is full" in says) == (level, True, is_full)


def test_a_replica_is_a_fault_unless_it_is_that_of_the_bus(redis: Redis, settings: Settings) -> None:
    redis.replicaof("127.0.0.1", str(services.free_port()))
    assert only_fault(check_redis()) == ("fail", "REDIS_URL names a replica, which takes no writes.")
    settings.BUS_REPLICA_URL, settings.REDIS_URL = settings.REDIS_URL, ""
    assert faults(check_redis()) == []
    settings.BUS_REPLICA_URL = f"redis://127.0.0.1:{services.free_port()}/0"
    level, says = only_fault(check_redis())
    assert (level, "(BUS_REPLICA_URL)" in says) == ("fail", True)


def test_a_user_who_may_not_ask_is_told(redis: Redis, settings: Settings) -> None:
    rights: dict[str, Any] = {"categories": ["+@all"], "commands": ["-info"]}
    rights |= {"keys": ["*"], "channels": ["*"]}
    redis.acl_setuser("service", enabled=True, passwords=["+password"], **rights)
    settings.REDIS_URL = settings.REDIS_URL.replace("//", "//service:password@")
    level, says = only_fault(check_redis())
    assert (level, "but not what is asked of it" in says) == ("warn", True)


def test_a_disk_that_took_no_snapshot_is_a_fault(redis: Redis, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "redis")
    redis.bgsave()
    wait_until(lambda: ask(redis, "persistence", "rdb_last_bgsave_status") == "err")
    level, says = only_fault(check_redis())
    assert level == "fail"
    assert "rdb_last_bgsave_status" in says


@pytest.mark.parametrize(("version", "level"), [("5.0.14", "fail"), ("6.2.0", "ok"), ("8.0.1", "ok")])
def test_a_version_that_nobody_tests_is_a_fault(version: str, level: str) -> None:
    assert judge_version(version).level == level
