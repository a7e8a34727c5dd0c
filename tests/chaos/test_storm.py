"""Accounting under chaos: whatever happens to nodes, servers and links, every ask ends, once, in something known.

Half a minute of it for every day; ``make chaos`` runs for longer, and prints the report.
"""

import re

import pytest
from tests.chaos import storm
from tests.chaos.journal import REPLIED
from tests.chaos.plan import NAMES, STRANGERS, Fault
from tests.chaos.rolling import rolling_restart

import framewire as fw


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [11, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(21, 26))])
def test_every_ask_ends_once_in_something_known_whatever_goes_wrong(seed):
    report = storm.run(seed, 20, rate=15)
    assert not report.problems, str(report)
    assert report.account.outcomes[REPLIED] > report.account.asks / 4, str(report)
    assert len(report.account.outcomes) > 2, str(report)


def silenced(*faults):
    """The report of a run in which the name server is silent, while something else happens."""
    report = storm.run(7, 0, rate=15, plan=[(Fault("silence", NAMES, 0.0, 4.0), *faults)])
    if "were not used" in report.names:
        pytest.skip(f"names {report.names}")
    assert not report.problems, str(report)
    assert int(re.search(r"of which (\d+) were not answered", report.names)[1]) > 0, str(report)
    return report


@pytest.mark.timeout(300)
def test_no_ask_fails_while_a_name_server_is_silent_and_servers_are_connected_to_anew():
    report = silenced(Fault("cut", "a to left", 0.3, 3.5), Fault("cut", "b to right", 0.3, 3.5))
    failed = fw.RemoteError.__name__  # as some handlers do, whatever happens
    assert set(report.account.outcomes) == {REPLIED, failed}, str(report)


@pytest.mark.timeout(300)
def test_no_promise_is_broken_while_a_name_server_is_silent():
    """Those who know each other go on, and who is started meanwhile is there when names are."""
    report = silenced(Fault("kill", "c", 0.5, 0.5), Fault("kill", "left", 0.5, 1.0), Fault("cut", "to b", 0.5, 1.0))
    assert report.account.outcomes[REPLIED] > report.account.asks / 2, str(report)


@pytest.mark.timeout(300)
def test_no_ask_fails_while_strangers_attack():
    report = storm.run(7, 0, rate=15, plan=[(Fault("attack", STRANGERS, 0.0, 6.0),)])
    assert not report.problems, str(report)
    failed = fw.RemoteError.__name__  # as some handlers do, whatever happens
    assert set(report.account.outcomes) == {REPLIED, failed}, str(report)
    assert min(report.strangers.values()) > 10, str(report)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("rate", [300, pytest.param(2000, marks=pytest.mark.long)])
def test_no_ask_fails_while_every_node_is_restarted_in_turn(rate):
    rolled = rolling_restart(rate)
    assert not rolled.account.problems, str(rolled)
    assert set(rolled.account.outcomes) == {REPLIED}, str(rolled)
    assert rolled.account.asks > rate, str(rolled)
