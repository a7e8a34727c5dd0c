"""A run: rounds of trouble while everyone asks everyone, and the report of what became of it."""

import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field

from tests.chaos.ledger import Account, account
from tests.chaos.plan import rounds
from tests.chaos.town import SOON, Town

_DUPLICATE = "duplicate_reply"


@dataclass
class Report:
    """What a run has shown. ``problems`` is empty where all promises held."""

    seed: int
    seconds: float
    rate: float
    faults: Counter = field(default_factory=Counter)
    damaged: int = 0
    names: str = ""
    """What became of the name server."""
    strangers: Counter = field(default_factory=Counter)
    """What strangers have done."""
    recoveries: list = field(default_factory=list)
    """Each as (the faults of the round, seconds)."""
    account: Account = field(default_factory=Account)
    dead: Counter = field(default_factory=Counter)
    problems: list = field(default_factory=list)

    def __str__(self):
        slowest = sorted(self.recoveries, key=lambda each: each[1])[-3:]
        lines = [
            f"seed {self.seed}, {self.seconds:.0f} s, {self.rate:g} asks a second of each node",
            "faults:    " + ", ".join(f"{count} {kind}" for kind, count in sorted(self.faults.items())),
            f"           {self.damaged} pieces damaged on the way",
            f"names:     {self.names}",
            "strangers: " + ", ".join(f"{count} {what}" for what, count in self.strangers.items()),
            f"asks:      {self.account.asks}",
            *(f"           {count:7} {what}" for what, count in self.account.outcomes.most_common()),
            f"           waited at most {self.account.longest:.2f} s beyond a timeout",
            f"recovery:  {len(self.recoveries)} rounds, within {SOON:g} s each",
            *(f"           {took:7.2f} s after {faults}" for faults, took in reversed(slowest)),
            "dead letters: " + (", ".join(f"{count} {what}" for what, count in self.dead.most_common()) or "none"),
            *(f"BROKEN:    {problem}" for problem in self.problems),
            f"replay:    python -m tests.chaos --seed {self.seed} --seconds {self.seconds:g} --rate {self.rate:g}",
        ]
        return "\n".join(lines)


def run(seed, seconds, *, rate=20.0, plan=None, tell=lambda _: None):
    """Let a storm pass over a town, by its seed or a ``plan``; ``tell`` is called with a line for every round."""
    report = Report(seed, seconds, rate)
    with tempfile.TemporaryDirectory(prefix="framewire-chaos-") as folder:
        town = Town(folder, seed=seed, rate=rate)
        try:
            town.open()
            for faults in rounds(seed, seconds) if plan is None else plan:
                _round(town, faults, report, tell)
            left = town.members.quiet()
            report.problems += [f"{count} promises are open at {name}" for name, count in left.items() if count]
            for counts in town.members.counts().values():
                report.dead.update(counts)
            report.damaged = town.damaged
            town.names.speak()
            report.names = str(town.names)
            report.strangers.update(town.strangers)
        finally:
            town.close()
        killed = town.members.killed
        report.account = account(town.members.journals(), killed=killed, stopped=town.stopped)
    report.problems += report.account.problems
    if report.dead[_DUPLICATE]:
        report.problems.append(f"{report.dead[_DUPLICATE]} answers came twice")
    return report


def _round(town, faults, report, tell):
    began = time.monotonic()
    steps = [(fault.begins, town.do, fault) for fault in faults]
    steps += [(fault.begins + fault.seconds, town.undo, fault) for fault in faults]
    for due, step, fault in sorted(steps, key=lambda each: each[0]):
        time.sleep(max(0.0, began + due - time.monotonic()))
        step(fault)
    report.faults.update(fault.kind for fault in faults)
    named = ", ".join(f"{fault} {fault.seconds:.1f} s" for fault in faults)
    healed = time.monotonic()
    took = town.settled(SOON)
    # Right at once may be right by chance: what has been held up arrives only now. So it counts at the end, too.
    time.sleep(max(0.0, healed + SOON - time.monotonic()))
    if took is None or town.settled(0) is None:
        report.problems.append(f"the routes are not right {SOON:g} s after: {named}; {town.members.tables()}")
        took = town.settled(60)
        tell(f"TOO SLOW ({took} s more): {named}")
        took = SOON + (60 if took is None else took)
    else:
        tell(f"{took:5.2f} s after {named}")
    report.recoveries.append((named, took))
