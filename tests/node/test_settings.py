"""What a node can be told."""

import math

import pytest

import framewire as fw


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("timeout", 0),
        ("timeout", -1),
        ("timeout", math.inf),
        ("timeout", math.nan),
        ("timeout", "1"),
        ("timeout", None),
        ("mailbox", 0),
        ("mailbox", 1.5),
        ("overflow", "explode"),
        ("overflow", []),
        ("threads", 0),
        ("keep_dead_letters", -1),
        ("route_grace", -1),
        ("route_grace", math.nan),
        ("hold", -1),
        ("stall_after", 0),
        ("stop_timeout", -1),
        ("stop_timeout", math.inf),
        ("max_hops", 0),
        ("max_hops", 65536),
    ],
)
def test_a_setting_that_cannot_be_is_named_with_what_is_accepted(setting, value):
    with pytest.raises(fw.ConfigError) as raised:
        fw.Node(**{setting: value})
    [problem] = raised.value.problems
    assert problem.startswith(f"{setting}: {value!r}; must be ")


def test_all_problems_are_told_at_once():
    with pytest.raises(fw.ConfigError) as raised:
        fw.Node(timeout=0, mailbox=0, max_hops=0)
    assert len(raised.value.problems) == 3


def test_unknown_settings_are_errors_and_the_known_ones_are_listed():
    with pytest.raises(fw.ConfigError, match=r"colour: no such setting; there are .*mailbox.*timeout") as raised:
        fw.Node(colour="red", size=5)
    assert len(raised.value.problems) == 2


@pytest.mark.parametrize("identity", ["", b"", b"\x00x", "x" * 256])
def test_an_identity_that_cannot_travel_is_refused(identity):
    with pytest.raises(fw.UsageError, match="identity"):
        fw.Node(identity=identity)


def test_an_identity_may_be_text_or_bytes_and_is_made_up_otherwise():
    assert fw.Node(identity="köln").identity == "köln".encode()
    assert fw.Node(identity=b"\xff").identity == b"\xff"
    assert fw.Node().identity != fw.Node().identity
