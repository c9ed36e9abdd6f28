from __future__ import annotations

import httpx

from accounts.key_text import generate_key
from market.push.keys import LEAD
from tests.client import Server
from tests.patience import PATIENCE_S

from .conftest import engine_beside, make_ingest_key


def post(server: Server, client: httpx.Client, key: str) -> httpx.Response:
    return client.post(f"{server.url}/ingest/ticks", content=b"[]", headers={"X-Ingest-Key": key})


def test_bad_keys_are_slowed_down_and_good_ones_never(server: Server) -> None:
    key = make_ingest_key()
    with httpx.Client(timeout=PATIENCE_S) as client, engine_beside(server):
        statuses = [post(server, client, generate_key(LEAD)).status_code for _ in range(61)]
        refused = post(server, client, "nonsense")
        assert post(server, client, key).status_code == 200
    assert statuses == [401] * 60 + [429]
    told = refused.json()["error"]
    assert (refused.status_code, told["code"]) == (429, "rate_limit_exceeded")
    assert "ingest key" in told["message"]
    assert int(refused.headers["Retry-After"]) > 0
