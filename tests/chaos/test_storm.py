"""Accounting under chaos: whatever happens to nodes, servers and links, every ask ends, once, in something known.

Half a minute of it for every day; ``make chaos`` runs for longer, and prints the report.
"""

import pytest
from tests.chaos import storm
from tests.chaos.journal import REPLIED
from tests.chaos.rolling import rolling_restart


@pytest.mark.timeout(300)
@pytest.mark.parametrize("seed", [11, *(pytest.param(seed, marks=pytest.mark.long) for seed in range(21, 26))])
def test_every_ask_ends_once_in_something_known_whatever_goes_wrong(seed):
    report = storm.run(seed, 20, rate=15)
    assert not report.problems, str(report)
    assert report.account.outcomes[REPLIED] > report.account.asks / 4, str(report)
    assert len(report.account.outcomes) > 2, str(report)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("rate", [300, pytest.param(2000, marks=pytest.mark.long)])
def test_no_ask_fails_while_every_node_is_restarted_in_turn(rate):
    rolled = rolling_restart(rate)
    assert not rolled.account.problems, str(rolled)
    assert set(rolled.account.outcomes) == {REPLIED}, str(rolled)
    assert rolled.account.asks > rate, str(rolled)
