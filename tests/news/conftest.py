from __future__ import annotations

import pytest

from news.ingest.polling import Fetcher
from news.scoring import score_in_time
from tests.patience import PATIENCE_S


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine busy with other things is no feed and no model that hangs."""
    defaults = {"allow_loopback": False, "timeout_s": PATIENCE_S}
    monkeypatch.setattr(Fetcher.__init__, "__kwdefaults__", defaults)
    monkeypatch.setattr(score_in_time, "__defaults__", (PATIENCE_S,))
    for name in ("polling.TIMEOUT_S", "polling.CONNECT_S", "parsing_process.PATIENCE_S"):
        monkeypatch.setattr(f"news.ingest.{name}", PATIENCE_S)
    monkeypatch.setattr("news.language_models.CHECK_TIMEOUT_S", PATIENCE_S)
