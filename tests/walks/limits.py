"""What each walk passes at most. A higher limit needs a reason, in docs/architecture.md.

Which thread has its turn first moves a figure by a few, so a limit is the most of several measurements."""

from __future__ import annotations

from .counting import Figures

LIMITS = {
    "a venue's tick → socket": Figures(27, 38, 12),
    "GET quote → bytes": Figures(14, 20, 7),
    "a signal published on the form, then closed by a tick": Figures(52, 148, 99),
    "RSS → /api/news": Figures(45, 116, 73),
    "a key revoked in the admin → socket closed with 4401": Figures(26, 41, 17),
}

WAY_OUT = (
    "`-v`, or `make walks VERBOSE=1`, prints the walk. Shorten it, or raise its limit in"
    " tests/walks/limits.py and say why in docs/architecture.md, which shows the walks."
)

# The server and what puts the apps together: every request passes these, whatever it asks for.
PASSED_BY_ALL = frozenset({"config", "pages", "serving"})
