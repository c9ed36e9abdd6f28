"""What each story passes at most. A higher limit needs a reason, in docs/architecture.md.

Which thread has its turn first moves a figure by a few, so a limit is the most of several measurements."""

from __future__ import annotations

from .counting import Figures

LIMITS = {
    "a venue's tick → socket": Figures(26, 34, 11),
    "GET quote → bytes": Figures(14, 22, 9),
    "a signal published on the form, then closed by a tick": Figures(51, 158, 109),
    "RSS → /api/news": Figures(34, 90, 58),
    "a key revoked in the admin → socket closed with 4401": Figures(23, 34, 13),
}

PAGE = "docs/architecture.md shows the walks, and is the place for the reason why one has to be longer."

# The server and what puts the apps together: every request passes these, whatever it asks for.
PASSED_BY_ALL = frozenset({"config", "pages", "serving"})
