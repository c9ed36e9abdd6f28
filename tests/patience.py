"""How long a test waits for what must come to pass. Only one that fails ever takes it, so it is longer than
the slowest machine needs: beside other work, at `nice`, a process gets a twentieth of a core."""

from __future__ import annotations

PATIENCE_S = 300.0
# What does a minute's work on an idle core before it answers.
START_PATIENCE_S = 1800.0
