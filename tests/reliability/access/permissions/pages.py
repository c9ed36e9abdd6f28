"""Every page that is not of a model: whom it opens to. What is missing here fails the matrix."""

from __future__ import annotations

import re

# Anybody may read them; a POST there does nothing to anybody but who sends it.
OPEN = {
    *("start", "openapi", "asyncapi", "llms", "docs", "clients", "without-client", "computed_page"),
    *("changelog", "api_page", "api_headers", "api_errors", "operation", "streams_page"),
    *("streams_messages", "streams_errors", "streams_errors_before", "streams_market"),
    *("streams_orderflow", "streams_candles", "streams_all"),
    *("streams_signals", "streams_news", "docs_search", "document", "document_image"),
    "client_package",
    *("status", "status_json", "status_feed", "healthz", "readyz", "page_token", "demo_login"),
    *("demo_past", "publishers", "publisher_page", "publisher_scorecard", "signal_page", "ledger_page"),
    *("checked_signals", "filled_signals", "publisher_marks", "publisher_bundle"),
    *("ledger_checkpoint", "ledger_checkpoint_of", "ledger_proofs", "ledger_key"),
    *("about", "pricing", "terms", "privacy", "robots", "security_text"),
    *("account_login", "account_logout", "account_inactive", "account_signup", "account_reset_password"),
    *("account_email_verification_sent", "account_reset_password_done", "account_confirm_login_code"),
    *("account_confirm_email", "account_reset_password_from_key", "account_reset_password_from_key_done"),
    *("mfa_authenticate", "mfa_login_webauthn"),
}
# Shut to who is not logged in; each shows and changes one's own.
OWN = {
    *("account_reauthenticate", "account_email", "account_change_password", "account_set_password"),
    *("mfa_index", "mfa_reauthenticate", "mfa_activate_totp", "mfa_deactivate_totp", "mfa_list_webauthn"),
    *("mfa_view_recovery_codes", "mfa_generate_recovery_codes", "mfa_download_recovery_codes"),
    *("mfa_add_webauthn", "mfa_reauthenticate_webauthn", "usersessions_list", "keys", "first_run", "events"),
    *("open_streams", "close_stream", "tier", "usage", "publish_signals", "live_signals"),
    "ask_to_publish",
    *("terminal", "watchlist", "account", "export_account"),
}
# Of one row: to everybody else it does not exist.
OF_A_ROW = {
    *(
        "end_session",
        "withdraw_tier_request",
        "withdraw_publisher_request",
        "roll_key",
        "revoke_key",
        "close_signal",
    ),
    *("mfa_remove_webauthn", "mfa_edit_webauthn"),
}
# Behind a key or a token of their own: no login opens them.
KEYED = {"ingest", "metrics"}
LEADS_ON = {"settings"}
# Of the back office: which permissions open it, where being staff is not enough.
STAFF_ONLY = {
    **{name: frozenset[str]() for name in ("index", "password_change", "password_change_done", "jsi18n")},
    **{name: frozenset[str]() for name in ("app_list", "search")},
    "admin/(?P<url>.*)$": frozenset[str](),
    "autocomplete": frozenset({"accounts.view_user"}),
    "market_status": frozenset({"instruments.view_instrument", "market.view_candle"}),
    "news_queue": frozenset({"news.change_newsitem"}),
    "news_calibration_page": frozenset({"news.view_newsitem"}),
}
# Whoever may change users may see them.
ALSO = {"autocomplete": frozenset({"accounts.change_user"})}


def is_keyed(pattern: str, name: str) -> bool:
    return pattern.lstrip("^").startswith("api") or name in KEYED


def address_of(pattern: str, row: object = 1) -> str:
    """With something in the place of each parameter."""
    pattern = re.sub(r"\(\?P<app_label>(\w+)[^)]*\)", r"\1", pattern)
    pattern = re.sub(r"\(\?P<url>.*\)", "nothing/", pattern)
    pattern = re.sub(r"\(/\|\$\)", "/", pattern)
    pattern = re.sub(r"\(\?P<\w+>(?:[^()]|\([^)]*\))+\)", "x", pattern)
    pattern = re.sub(r"<(?:int|uuid):\w+>", str(row), pattern)
    pattern = re.sub(r"<[^>]+>", "x", pattern)
    return "/" + pattern.replace("^", "").replace("/?", "").replace("$", "").lstrip("/")
