"""Windows of time, and the steps of what is told over them."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framewire.errors import UsageError
from framewire.history.windows import Window, moments, step_for

MORNING = dt.datetime(2026, 3, 1, 8, 17, 3)  # noqa: DTZ001 - as the lake's times


def over(micros):
    return Window(MORNING, MORNING + dt.timedelta(microseconds=micros))


@given(st.integers(min_value=30, max_value=40 * 365 * 86_400 * 1_000_000))
def test_any_time_is_told_in_24_to_96_points(micros):
    window = over(micros)
    points = list(moments(window, step_for(window)))
    assert 24 <= len(points) <= 96


def test_four_hours_are_told_in_steps_of_five_minutes():
    assert step_for(over(4 * 3600 * 1_000_000)) == 5 * 60 * 1_000_000


def test_steps_begin_at_full_multiples_and_cover_the_window():
    window = over(4 * 3600 * 1_000_000)
    told = [dt.datetime(1970, 1, 1) + dt.timedelta(microseconds=at) for at in moments(window, step_for(window))]  # noqa: DTZ001 - same
    assert told[0] == dt.datetime(2026, 3, 1, 8, 15)  # noqa: DTZ001 - same
    assert told[-1] == dt.datetime(2026, 3, 1, 12, 15)  # noqa: DTZ001 - same


def test_times_with_a_zone_are_put_into_utc():
    berlin = dt.timezone(dt.timedelta(hours=1))
    assert Window(dt.datetime(2026, 3, 1, 9, tzinfo=berlin)).since == dt.datetime(2026, 3, 1, 8)  # noqa: DTZ001 - same


def test_hours_are_all_that_a_window_touches():
    window = Window(MORNING, dt.datetime(2026, 3, 1, 10))  # noqa: DTZ001 - same
    assert window.hours == Window(dt.datetime(2026, 3, 1, 8), dt.datetime(2026, 3, 1, 10))  # noqa: DTZ001 - same


def test_a_window_that_ends_before_it_begins_is_refused():
    with pytest.raises(UsageError, match="the end must be after the beginning"):
        Window(MORNING, MORNING)
