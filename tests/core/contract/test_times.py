from __future__ import annotations

import pytest

from core.contract.errors import InvalidParameter, ParameterOutOfRange
from core.contract.parameters import QuerySerializer, TimeParameter, read_parameters


class Query(QuerySerializer):
    start = TimeParameter()


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("2026-11-20T14:00:00Z", 1_795_183_200_000),
        ("2026-11-20T14:00Z", 1_795_183_200_000),
        ("2026-11-20T15:00:00%2B01:00", 1_795_183_200_000),
        ("2026-11-20T14:00:00.2501Z", 1_795_183_200_251),
        ("1795183200000", 1_795_183_200_000),
        ("0", 0),
    ],
)
def test_moment_is_read(text: str, time_ms: int) -> None:
    assert read_parameters(Query, f"start={text}")["start"] == time_ms


def test_absent_moment_is_none() -> None:
    assert read_parameters(Query, "")["start"] is None


@pytest.mark.parametrize(
    "text",
    ["2026-11-20T14:00:00", "2026-11-20", "", "now", "1.5", "-1", "1_0", "٣", "2026-11-20T15:00:00+01:00"],
)
def test_what_is_no_moment_is_refused_by_its_name(text: str) -> None:
    with pytest.raises(InvalidParameter, match="start must be an ISO 8601 time with its zone"):
        read_parameters(Query, f"start={text}")


@pytest.mark.parametrize(("text", "read"), [("20261120", "1970-01-01T05:37:41.120Z")])
def test_day_without_its_hyphens_is_not_taken_for_milliseconds(text: str, read: str) -> None:
    with pytest.raises(InvalidParameter) as refused:
        read_parameters(Query, f"start={text}")
    assert str(refused.value) == (
        f"start is in milliseconds, and {text} would be {read}. If this is a date, send 2026-11-20T00:00:00Z."
    )


@pytest.mark.parametrize("text", ["20261320", "19691231", "60000", "3600000", "02026112"])
def test_other_small_numbers_are_milliseconds(text: str) -> None:
    assert read_parameters(Query, f"start={text}")["start"] == int(text)


@pytest.mark.parametrize("text", ["1969-12-31T23:59:59Z", "253402300800000", "9" * 5000])
def test_moment_out_of_range_is_refused(text: str) -> None:
    with pytest.raises(ParameterOutOfRange):
        read_parameters(Query, f"start={text}")
