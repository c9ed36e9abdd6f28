"""The 79 faults: what each is about, and where those without a test of reliability are tested."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
FOLDERS = ("tests/reliability", "tests/nightly/reliability")

TITLES: dict[int, str] = {
    1: "100 simultaneous requests on four processes",
    2: "100 simultaneous requests with two keys of one account",
    3: "100 simultaneous subscribes on four processes",
    4: "A process that holds streams is killed",
    5: "A process is killed while it writes",
    6: "A web process is killed with a crowd connected",
    7: "Redis is killed and comes back empty",
    8: "PostgreSQL is restarted under load",
    9: "A client never reads",
    10: "A client never reads, but sends a byte now and then",
    11: "200 of 1,000 clients never read",
    12: "Clients resume after up to two minutes",
    13: "Clients resume too late or from an unknown position",
    14: "500 clients are disconnected twenty times",
    15: "A key is revoked while its stream is open",
    16: "A tier is lowered while streams are open",
    17: "Malformed messages",
    18: "Hostile frames and handshakes",
    19: "Oversized or excessively fragmented frames",
    20: "Unknown symbols among known ones",
    21: "A flood of subscribes",
    22: "Sockets that never subscribe",
    23: "Parameters that are not numbers",
    24: "Deceptive symbols",
    25: "Impossible ticks",
    26: "Hostile text from people and feeds",
    27: "Scripts in pages",
    28: "Forged forms",
    29: "Sessions that should have ended",
    30: "Access to the records of others",
    31: "Leaked keys",
    32: "A key in a URL",
    33: "The time that refusing a key takes",
    34: "Errors that reveal whether a key exists",
    35: "SIGTERM with open streams and requests",
    36: "A rolling restart",
    37: "Twice and ten times the sustainable load",
    38: "Request smuggling",
    39: "A cookie instead of a key",
    40: "Unsafe settings and dependencies",
    41: "Requests generated from the OpenAPI document",
    42: "Paths served and paths documented",
    43: "Slow request heads, slow bodies, slow readers",
    44: "10,000 half-open sockets",
    45: "Bodies of a hundred megabytes",
    46: "A peer that vanishes without closing",
    47: "A peer that never answers a ping",
    48: "Redis is paused",
    49: "Redis is slow or resets connections",
    50: "Redis is full",
    51: "Rate limits without Redis",
    52: "PostgreSQL is paused",
    53: "PostgreSQL is paused, killed and restarted in quick succession",
    54: "A full disk",
    55: "A sync to disk that fails once",
    56: "Clocks that jump",
    57: "Daylight saving, weekends, the turn of the year, a silent feed",
    58: "Ticks out of order, duplicated or in bursts",
    59: "A process that was frozen for a while",
    60: "A long migration under load",
    61: "New code on the old schema, and the reverse",
    62: "An hour of mixed load",
    63: "100,000 connections that come and go",
    64: "Guessing passwords",
    65: "Staff without a second factor",
    66: "The log of staff actions",
    67: "A rolled key and its successor",
    68: "Simultaneous AI requests, and the quota at midnight",
    69: "Odd and duplicated headers",
    70: "Forged hosts",
    71: "Regular expressions against long strings",
    72: "Forged log lines",
    73: "500 bars as often as a tier allows",
    74: "Backup and restore under writes",
    75: "Moving from SQLite to PostgreSQL",
    76: "The number of clients over several processes",
    77: "A process is killed in the middle of a rate window",
    78: "Secrets in the repository",
    79: "Old TLS versions at the example proxy",
}

SLOW = (
    "tests/contract/streams/ending/test_slow.py"
    "::test_who_does_not_read_is_closed_with_4430_and_its_place_is_free_at_once"
)
HOSTILE = (
    "tests/serving/websocket/test_hostile_clients.py"
    "::test_hostile_frames_close_with_their_code_and_harm_nobody"
)
ELSEWHERE: dict[int, tuple[str, ...]] = {
    9: (SLOW,),
    10: (SLOW,),
    13: (
        "tests/contract/streams/subscribing/test_resume.py::test_other_epoch_brings_the_last_tick_alone",
        "tests/contract/streams/subscribing/test_resume.py::test_symbols_are_recovered_whole_or_not_at_all_each_by_itself_or_start_live",
    ),
    18: (HOSTILE,),
    19: (HOSTILE,),
    20: (
        "tests/contract/streams/subscribing/test_subscribe.py::test_unknown_symbols_are_rejected_and_the_others_flow",
        "tests/contract/streams/subscribing/test_subscribe.py::test_two_hundred_symbols_are_taken_and_one_more_is_not",
    ),
    21: (
        "tests/contract/streams/ending/test_refusals.py::test_twenty_messages_at_once_are_taken_and_more_are_not",
    ),
    22: ("tests/contract/streams/ending/test_refusals.py::test_who_never_subscribes_is_not_kept",),
    23: (
        "tests/contract/test_parameters.py::test_what_is_no_whole_number_is_refused",
        "tests/contract/test_parameters.py::test_number_out_of_range_is_refused_and_never_clamped",
    ),
    24: ("tests/contract/test_paths.py::test_tricky_symbol_is_404_and_401_without_a_key",),
    25: (
        "tests/market/engine/test_engine.py::test_refused_tick_is_counted_and_the_last_good_value_stays",
        "tests/market/engine/test_engine_hypothesis.py::test_every_tick_counts_once_whatever_happens_to_the_engine",
        "tests/market/engine/test_candle_properties.py::test_candles_are_what_the_taken_ticks_say_and_flat_between_them",
    ),
    26: (
        "tests/contract/test_hostile_text.py::test_what_is_typed_is_stored_as_it_is",
        "tests/contract/test_hostile_text.py::test_json_answers_with_the_same_text_and_is_never_taken_for_a_page",
        "tests/contract/test_hostile_text.py::test_a_list_of_the_back_office_shows_text",
        "tests/contract/test_hostile_text.py::test_the_settings_panel_shows_text",
        "tests/contract/test_hostile_text.py::test_no_cell_of_an_export_starts_a_formula",
        "tests/browser/test_hostile_text.py::test_nothing_of_what_is_typed_runs_in_a_browser",
        "tests/accounts/panel/test_keys.py::test_name_is_text_everywhere",
        "tests/news/newsroom/test_queue.py::test_a_hostile_title_is_text",
        "tests/instruments/test_table_pages.py::test_no_exported_cell_starts_a_formula",
    ),
    27: (
        "tests/accounts/panel/test_look.py::test_page_carries_the_strict_policy",
        "tests/accounts/back_office/test_entry.py::test_nothing_is_inline_or_from_another_host",
    ),
    28: (
        "tests/accounts/panel/test_key_actions.py::test_a_post_from_elsewhere_is_refused",
        "tests/accounts/panel/test_key_actions.py::test_only_a_post_acts",
        "tests/news/newsroom/test_queue.py::test_a_get_changes_nothing_and_a_forged_post_is_refused",
        "tests/signals_feed/publishing/test_pages.py::test_form_without_its_token_against_forgery_is_refused",
    ),
    29: (
        "tests/accounts/login/test_login.py::test_a_session_from_before_the_login_is_worth_nothing_after_it",
        "tests/accounts/login/test_login.py::test_logging_out_ends_the_session_for_every_copy_of_its_cookie",
        "tests/accounts/login/test_login.py::test_changing_the_password_logs_other_browsers_out",
        "tests/accounts/login/test_login.py::test_session_cookie_is_out_of_reach_for_scripts_and_other_sites",
    ),
    30: (
        "tests/accounts/panel/test_key_actions.py::test_a_key_that_is_not_ones_own_is_404",
        "tests/accounts/back_office/test_every_page.py::test_a_customer_does_not_get_in",
    ),
    32: ("tests/contract/callers/test_authentication.py::test_key_in_the_url_is_not_read_nor_logged",),
    34: ("tests/contract/callers/test_authentication.py::test_bad_keys_are_all_answered_alike",),
    39: (
        "tests/contract/streams/ending/test_refusals.py::test_cookies_alone_are_no_subscribe",
        "tests/contract/streams/ending/test_refusals.py::test_subscribe_with_a_cookie_instead_of_a_key_brings_no_data",
    ),
    45: (
        "tests/serving/http/test_bounds.py::test_what_is_within_the_limits_is_read_and_nothing_else",
        "tests/serving/http/test_bounds.py::test_who_sends_on_sees_the_refusal_and_is_not_read",
        "tests/pages/test_faults.py::test_stranger_is_refused_and_staff_are_heard",
    ),
    46: ("tests/serving/websocket/test_protocol.py::test_a_peer_that_is_gone_is_aborted",),
    41: ("tests/contract/openapi/test_schemathesis.py::test_server_keeps_to_its_document",),
    42: ("tests/contract/openapi/test_document.py::test_document_has_exactly_the_paths_that_are_served",),
    57: (
        "tests/instruments/test_hours.py::test_session_at_follows_local_wall_time",
        "tests/instruments/test_hours.py::test_daily_hours_agree_with_the_local_clock",
        "tests/market/engine/test_candle_properties.py::test_candles_are_what_the_taken_ticks_say_and_flat_between_them",
        "tests/market/engine/test_flat_minutes.py::test_nothing_is_flat_while_the_source_is_silent",
    ),
    58: (
        "tests/market/engine/test_candle_properties.py::test_replaying_and_repeating_give_the_same_rows",
        "tests/market/engine/test_engine_hypothesis.py::test_every_tick_counts_once_whatever_happens_to_the_engine",
    ),
    61: (
        "tests/tools/lint/migrations/test_migrations.py::test_migrations_only_add",
        "tests/reliability/upgrade/test_upgrade.py::test_an_upgrade_loses_nothing",
        "tests/nightly/reliability/upgrade/test_open_signals.py::test_on_postgresql_and_redis_under_traffic",
    ),
    63: ("tests/contract/streams/test_nothing_left.py::test_ended_socket_leaves_nothing",),
    65: (
        "tests/accounts/login/test_second_factor_of_staff.py::test_staff_without_a_factor_reach_no_page_of_the_admin",
        "tests/accounts/login/test_second_factor.py::test_a_recovery_code_works_once",
        "tests/accounts/login/test_second_factor.py::test_a_code_that_was_used_is_refused",
    ),
    66: (
        "tests/accounts/back_office/test_every_act_is_logged.py::test_it_is_logged_with_its_actor",
        "tests/accounts/back_office/test_every_act_is_logged.py::test_all_that_can_be_done_is_walked_through",
        "tests/accounts/back_office/test_every_act_is_logged.py::test_all_buttons_of_the_queue_are_walked_through",
    ),
    67: (
        "tests/accounts/keys/test_issuing.py::test_rolled_key_works_for_the_overlap_and_then_no_more",
        "tests/contract/callers/test_authentication.py::test_rolled_key_works_beside_its_successor_until_the_overlap_ends",
    ),
    74: (
        "tests/operations/copying/test_move.py::test_what_is_restored_is_what_was_backed_up",
        "tests/nightly/operations/test_unfinished.py::test_a_restore_killed_near_its_end_is_made_again",
    ),
    75: (
        "tests/operations/copying/test_move.py::test_every_row_arrives_as_it_was",
        "tests/operations/copying/test_move.py::test_a_killed_move_goes_on",
    ),
    70: (
        "tests/contract/test_paths.py::test_host_that_is_none_of_ours_is_400",
        "tests/contract/test_paths.py::test_forged_host_of_a_proxy_comes_back_nowhere",
    ),
    72: ("tests/config/test_logging.py::test_what_was_sent_stays_on_one_line_escaped_and_cut",),
    76: (
        "tests/accounts/open_streams/test_redis_slots.py::test_each_process_knows_the_streams_of_all",
        "tests/contract/streams/ending/test_accounts.py::test_socket_counts_once_from_its_first_subscribe_until_it_has_gone",
    ),
    79: ("tests/nightly/deploy/test_old_tls.py::test_tls_before_1_2_is_refused",),
}

# Where and how a fault is covered that no test of this kind can show.
OTHERWISE: dict[int, tuple[str, str]] = {
    40: (
        "gate",
        "`make lint` checks the settings (`python -m tools.lint.production`); `make bandit` looks for"
        " unsafe code; pip-audit is not run, because it needs the network",
    ),
    62: ("nightly", "`make soak`; its results are below, under *An hour of mixed load*"),
}

NUMBERS = re.compile(r"\d+")
SPAN = re.compile(r"(\d+)\s*[–-]\s*(\d+)")


def numbers_in(row: str) -> set[int]:
    """Of "9, 10" or "12–14"; a row with another name has none."""
    if not row[:1].isdigit():
        return set()
    spans = {number for first, last in SPAN.findall(row) for number in range(int(first), int(last) + 1)}
    return spans | {int(number) for number in NUMBERS.findall(row)}


def marked() -> dict[int, list[str]]:
    """Where a test of reliability, or its file, is marked with a row."""
    found: dict[int, list[str]] = {}
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("test_*.py")):
        for row in rows_in(path):
            for number in numbers_in(row):
                found.setdefault(number, []).append(str(path.relative_to(ROOT)))
    return found


def rows_in(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.Call(func=ast.Attribute(attr="row"), args=[ast.Constant(value=str(row)), *_]):
                yield row


def exists(test: str) -> bool:
    """Whether the file has a test of that name."""
    path, _, name = test.partition("::")
    place = ROOT / path
    return place.is_file() and re.search(rf"def {name}\(", place.read_text()) is not None
