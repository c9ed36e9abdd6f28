"""The stream pushes what REST answers, except where the specification says otherwise."""

from __future__ import annotations

from typing import get_args

from signals_feed.models import Signal
from signals_feed.wire import ActiveSignal, ClosedSignal, CloseReason, Direction, NewSignal, SignalClosed


def test_new_signal_is_the_signal_without_its_status_and_with_a_time() -> None:
    fields = list(ActiveSignal.__struct_fields__)
    fields.remove("status")

    assert list(NewSignal.__struct_fields__) == [*fields, "time"]


def test_closure_is_the_closed_signal_with_a_time() -> None:
    assert list(SignalClosed.__struct_fields__) == [*ClosedSignal.__struct_fields__, "time"]
    assert SignalClosed.__struct_config__.tag == "signal.closed"


def test_closure_knows_every_reason_and_direction() -> None:
    assert list(get_args(CloseReason)) == Signal.CloseReason.values
    assert list(get_args(Direction)) == Signal.Direction.values
