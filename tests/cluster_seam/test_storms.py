"""Every promise ends, exactly once, whatever the network does: thousands of asks under every kind of fault."""

import asyncio
import math
from collections import Counter

import pytest
from tests.cluster_seam.messages import Answer, Question
from tests.node.running import run

import framewire as fw
from framewire.testing import Cluster, Fate, Faults, ManualClock

WAVES = 20
ASKS = 50
"""Asks of each node in each wave."""
TIMEOUT = 5.0


@fw.message("seam.relayed")
class Relayed(bytes):
    """Is answered by whoever answers the question it turns into."""


class Busy(fw.Actor):
    """Answers questions, fails on every seventh, and passes relayed ones on."""

    concurrency = 4

    @fw.handles(Question)
    async def question(self, question: Question) -> Answer:
        if question.number % 3 == 0:
            await asyncio.sleep(0)
        if question.number % 7 == 0:
            raise ValueError(question.number)
        return Answer(question.number)

    @fw.handles(Relayed)
    async def relayed(self, relayed: Relayed) -> Question:
        return Question(int(relayed))


class Storm:
    """Asks in waves on every node, and how they ended."""

    def __init__(self, cluster: Cluster, clock: ManualClock) -> None:
        self.cluster = cluster
        self.clock = clock
        self.asked: list[tuple[int, fw.Promise]] = []
        self.outcomes: Counter[str] = Counter()
        self.strangers = 0
        """Answers that were given to another question."""

    async def blow(self, events=None) -> None:
        events = events or {}
        for node in self.cluster:
            await node.host(Busy())
        await self.cluster.settled()
        for wave in range(WAVES):
            if wave in events:
                events[wave]()
            for node in self.cluster:
                for number in range(ASKS):
                    asked = Relayed(b"%d" % number) if number % 5 == 0 else Question(number)
                    self.asked.append((number, node.hub.start(asked, Answer, timeout=TIMEOUT)))
            await self.clock.advance(0.1)
        await self.clock.advance(3 * TIMEOUT)
        for number, promise in self.asked:
            self._count(number, promise)

    def _count(self, number: int, promise: fw.Promise) -> None:
        assert promise.done, "a promise that did not end"
        try:
            answer = promise.result()
        except fw.MessageError as error:
            self.outcomes[type(error).__name__] += 1
        else:
            self.outcomes["answered"] += 1
            self.strangers += answer.number != number

    @property
    def failed(self) -> int:
        """How many asks fail for their own sake, and not for the network's."""
        return sum(number % 7 == 0 for number, _ in self.asked)

    def dead(self, reason: fw.Reason) -> int:
        return sum(node.dead_letters.counts[reason] for node in self.cluster)

    def add_up(self) -> None:
        """Every ask ended once, every answer was counted once, and nothing is left."""
        assert self.outcomes.total() == len(self.asked) == WAVES * ASKS * len(self.cluster)
        assert sum(node.stats().totals["replies"] for node in self.cluster) == self.outcomes["answered"]
        for node in self.cluster:
            stats = node.stats()
            assert (stats.pending, stats.totals["pending"]) == ([], 0)
            assert [(a.name, a.queued, a.waiting, a.busy) for a in stats.actors if a.queued or a.busy] == []
        assert list(self.cluster.network.unsettled()) == []


def storm(faults, check, events=None, **options):
    async def scenario():
        clock = ManualClock()
        async with Cluster(3, clock=clock, faults=faults, keep_dead_letters=10, **options) as cluster:
            blown = Storm(cluster, clock)
            await blown.blow(events(cluster) if events else None)
            blown.add_up()
            check(blown, cluster.journal.counts)

    run(scenario(), timeout=60)


def test_calm():
    def check(blown, fates):
        assert blown.outcomes == {"answered": len(blown.asked) - blown.failed, "RemoteError": blown.failed}
        assert blown.strangers == 0
        assert set(fates) == {Fate.PASSED}

    storm(Faults(), check)


@pytest.mark.parametrize("seed", [1, 2])
def test_drops(seed):
    def check(blown, fates):
        assert set(blown.outcomes) == {"answered", "RemoteError", "Expired"}
        assert 0 < blown.outcomes["Expired"] <= fates[Fate.DROPPED]
        assert blown.strangers == 0

    storm(Faults(seed=seed, drop=0.1), check)


@pytest.mark.parametrize("seed", [1, 2])
def test_duplicates(seed):
    def check(blown, fates):
        assert blown.outcomes == {"answered": len(blown.asked) - blown.failed, "RemoteError": blown.failed}
        assert blown.strangers == 0
        assert fates[Fate.DUPLICATED] > 0
        assert blown.dead(fw.Reason.DUPLICATE_REPLY) > 0

    storm(Faults(seed=seed, duplicate=0.2), check)


@pytest.mark.parametrize("seed", [1, 2])
def test_delays(seed):
    def check(blown, fates):
        assert set(blown.outcomes) == {"answered", "RemoteError", "Expired"}
        assert blown.strangers == 0
        assert fates[Fate.DELAYED] > 0
        assert blown.dead(fw.Reason.LATE_REPLY) + blown.dead(fw.Reason.EXPIRED) > 0

    storm(Faults(seed=seed, delay=(0.0, 4.0)), check)


@pytest.mark.parametrize("seed", [1, 2])
def test_reordering(seed):
    def check(blown, fates):
        assert blown.outcomes == {"answered": len(blown.asked) - blown.failed, "RemoteError": blown.failed}
        assert blown.strangers == 0
        assert fates[Fate.REORDERED] > 0

    storm(Faults(seed=seed, reorder=0.3), check)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_corruption(seed):
    def check(blown, fates):
        assert blown.outcomes["answered"] > 0
        assert fates[Fate.CORRUPTED] > 0
        assert blown.dead(fw.Reason.MALFORMED) > 0

    storm(Faults(seed=seed, corrupt=0.2), check)


@pytest.mark.parametrize("lost_after", [0.0, 0.15, math.inf], ids=["at once", "later", "never"])
def test_partitions(lost_after):
    def check(blown, fates):
        assert set(blown.outcomes) <= {"answered", "RemoteError", "Expired", "Unreachable", "NoRoute"}
        assert blown.strangers == 0
        if lost_after == math.inf:
            assert blown.outcomes["Expired"] > 0
            assert fates[Fate.CUT_OFF] > 0

    def events(cluster):
        return {
            3: lambda: cluster.partition([0], [1, 2], lost_after=lost_after),
            7: cluster.heal,
            10: lambda: cluster.partition([0, 1], [2], lost_after=lost_after),
            15: cluster.heal,
        }

    storm(Faults(seed=1, delay=(0.0, 0.05)), check, events)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_everything_at_once_through_narrow_links(seed):
    def check(blown, fates):
        assert blown.outcomes["answered"] > 0
        assert set(fates) >= {Fate.DROPPED, Fate.DUPLICATED, Fate.DELAYED, Fate.REORDERED, Fate.CORRUPTED}

    def events(cluster):
        return {5: lambda: cluster.partition([seed % 3], [(seed + 1) % 3]), 12: cluster.heal}

    faults = Faults(seed=seed, drop=0.05, duplicate=0.05, delay=(0.0, 0.2), reorder=0.1, corrupt=0.05)
    storm(faults, check, events, limit=20)


def test_a_storm_repeats_from_its_seed():
    def blow():
        found = []

        def check(blown, fates):
            found.append((blown.outcomes, fates))

        storm(Faults(seed=9, drop=0.1, duplicate=0.1, reorder=0.1), check)
        return found

    assert blow() == blow()
