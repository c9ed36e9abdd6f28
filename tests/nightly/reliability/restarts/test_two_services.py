from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs.commands import manage
from tests.programs.running import Serve
from tests.programs.services import free_port


@pytest.mark.row("two services", "without Redis, one service at a time uses a data folder")
def test_a_service_without_the_demo_takes_nothing_from_one_with_it(tmp_path: Path) -> None:
    var_dir = tmp_path / "var"
    with Serve(var_dir) as first:
        ended = manage(var_dir, "serve", "--port", str(free_port()), DEMO="0")

        said = ended.stdout + ended.stderr
        assert ended.returncode == 1
        assert f"Another service runs on this data (process {first.pid} on " in said
        # Without the demo it would have been taken away.
        assert "Removing" not in said
    assert first.stop() == 0
