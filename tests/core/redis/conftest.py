from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.certificates import make_certificate
from tests.programs.debian import require_debian
from tests.programs.redis_group import FORGETFUL, RedisNode
from tests.programs.services import free_port


@pytest.fixture
def encrypted(tmp_path: Path) -> Iterator[tuple[int, Path]]:
    """Its port, and the certificate to know it by."""
    key, certificate = make_certificate(tmp_path)
    for path in (key, certificate, tmp_path):
        path.chmod(0o755)
    port = free_port()
    options = ["--tls-cert-file", certificate, "--tls-key-file", key, "--tls-port", port]
    # The one out of a wheel was built without encryption.
    binary = require_debian("redis-server")
    node = RedisNode(tmp_path / "redis", (*FORGETFUL, *map(str, options), "--tls-auth-clients", "no"), binary)
    with node.running():
        yield port, certificate
