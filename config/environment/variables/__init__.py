"""All variables that Tickwire reads, in the order in which docs/operate/settings.md shows them.

A new one is a row in its group and a line in config/settings.py; `tickwire-server settings-table --write`
renews the page."""

from ..variable import Variable, VariableGroup
from . import accounts, ledger, market, monitoring, news, process, storage

GROUPS: tuple[VariableGroup, ...] = (
    process.PROCESS,
    process.HTTP,
    storage.DATABASE,
    storage.REDIS,
    accounts.MAIL,
    accounts.ACCOUNTS,
    ledger.LEDGER,
    market.MARKET,
    market.FEEDS,
    market.ARCHIVE,
    news.NEWS,
    monitoring.MONITORING,
)
VARIABLES: dict[str, Variable] = {each.name: each for group in GROUPS for each in group.variables}
