"""Migrations since the last release for which a person answers, as the check cannot judge them: each with the
reason why that release can serve while they are applied, and afterwards. A release empties this list."""

HARMLESS = {
    "accounts.0011_archive_of_premium": "It sets a column that the last release does not know, in one"
    " row that only staff write.",
    "market.0013_unfinished_past": "It has rows only until the past of a demo is complete. Meanwhile the last"
    " release cannot remove the instruments of that demo.",
    "signals_feed.0015_names_of_before": "It adds rows to a table that the last release does not know.",
    "signals_feed.0017_kinds_of_entries": "The new constraints allow whatever the last release writes. They read"
    " the ledger, which has a few entries a minute, for three seconds for each million.",
    "signals_feed.0019_evidence_of_fills": "The new constraints allow whatever the last release writes. They read"
    " the evidence, two rows for each signal, for a second for each million.",
    "signals_feed.0021_signals_of_the_demo": "It sets a column that the last release does not know, for the few"
    " signals of a demo, while these alone wait.",
}
