"""Numbers, times and names as people read them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from framewire._counts import counted
from framewire.report.wording import compact, part, short, short_names, span, tick


@pytest.mark.parametrize(
    ("microseconds", "told"),
    [
        (None, "—"),
        (0, "0 µs"),
        (999.4, "999 µs"),
        (999.6, "1.00 ms"),
        (6562, "6.56 ms"),
        (9_999, "10.0 ms"),
        (123_989.2, "124 ms"),
        (999_700, "1.00 s"),
        (1_012_272, "1.01 s"),
        (100_000_000, "1 min 40 s"),
        (14_153_000_000, "3 h 55 min"),
        (90_000_000_000, "1 d 1 h"),
    ],
)
def test_spans_are_told_in_few_characters(microseconds, told):
    assert span(microseconds) == told


@pytest.mark.parametrize(
    ("microseconds", "told"), [(0, "0"), (500, "500 µs"), (2_500, "2.5 ms"), (40_000, "40 ms"), (1e6, "1 s")]
)
def test_marks_of_axes_have_no_needless_zeros(microseconds, told):
    assert tick(microseconds) == told


@pytest.mark.parametrize(
    ("some", "every", "told"),
    [
        (0, 10, "0 %"),
        (10, 10, "100 %"),
        (1, 100_000, "< 0.1 %"),
        (99_999, 100_000, "> 99.9 %"),
        (1, 8, "12.5 %"),
        (0, 0, "—"),
    ],
)
def test_a_part_is_never_rounded_to_nothing_or_all(some, every, told):
    assert part(some, every) == told


@pytest.mark.parametrize(
    ("number", "told"),
    [(9_999, "9,999"), (12_345, "12.3 k"), (999_400, "999 k"), (1_200_000, "1.2 M"), (3 * 10**9, "3 G")],
)
def test_large_numbers_fit_into_pictures(number, told):
    assert compact(number) == told


def test_one_is_told_as_one():
    assert (counted(1, "flow"), counted(2, "flow"), counted(None, "flow")) == ("1 flow", "2 flows", "0 flows")


@given(st.text(), st.integers(min_value=2, max_value=80))
def test_short_texts_are_short_and_harmless(text, longest):
    told = short(text, longest)
    assert len(told) <= longest
    assert told.isprintable()


def test_a_megabyte_is_shortened():
    assert short("x" * 1_000_000, 10) == "xxxxxxxxx…"


def test_names_that_begin_alike_are_told_apart():
    one, other = "abcdefgh-1-and-so-on-for-long", "abcdefgh-2-and-so-on-for-long"
    told = short_names({one, other, "shop"})
    assert told["shop"] == "shop"
    assert told[one] != told[other]
    assert all(len(name) <= 19 for name in told.values())
