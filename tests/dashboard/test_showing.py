"""Values as text: printable, short, and with addresses that hold them safely."""

import datetime as dt

import pytest

from framewire.dashboard.showing import address, bytes_text, flow_address, moment, shown, span


def test_what_is_not_printable_is_escaped_and_what_is_long_is_cut():
    assert shown("a\x1b[2J\u202eb") == "a\\x1b[2J\\u202eb"
    assert shown("x" * 1_000_000) == "x" * 160 + "…"
    assert shown(None) == shown("") == "—"


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (None, "—"),
        (0, "0"),
        (0.000_012, "12 µs"),
        (0.0123, "12.3 ms"),
        (1.5, "1.5 s"),
        (90, "1.5 min"),
        (7200, "2.0 h"),
        (172_800, "2.0 d"),
    ],
)
def test_times_are_as_short_as_tells_them(seconds, told):
    assert span(seconds) == told


def test_addresses_hold_any_flow_and_any_filter():
    assert flow_address("a/b?c#<script>") == "/flow/a%2Fb%3Fc%23%3Cscript%3E"
    assert flow_address(None) is None
    assert address("/losses", node="a&b", kind=None, message="") == "/losses?node=a%26b"
    assert address("/losses") == "/losses"


def test_sizes_and_moments():
    assert [bytes_text(size) for size in (0, 1023, 1536, 1 << 20)] == ["0 B", "1,023 B", "1.5 KiB", "1.0 MiB"]
    assert moment(dt.datetime(2026, 3, 1, 12, 0, 0, 1500)) == "2026-03-01 12:00:00.001"  # noqa: DTZ001 - as the lake
