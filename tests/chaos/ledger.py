"""The account of a run: every ask and what became of it, and what of that must not be."""

from collections import Counter
from dataclasses import dataclass, field

from tests.chaos.journal import REPLIED

import framewire as fw

CALLER_KILLED = "caller killed"
"""What becomes of an ask whose process is gone; nobody is there who could be told."""
TYPED = frozenset(error.__name__ for error in fw.MessageError.__subclasses__())
GRACE = 1.0
"""Seconds beyond its timeout that a caller may wait."""


@dataclass
class Account:
    """Sums, and the numbers of those asks that break a promise."""

    asks: int = 0
    outcomes: Counter = field(default_factory=Counter)
    unknown: list = field(default_factory=list)
    """Ended with something that is no reply and no typed error, or never ended."""
    twice: list = field(default_factory=list)
    """Handled, or ended, more than once."""
    unasked: list = field(default_factory=list)
    """Answered by nobody."""
    overdue: list = field(default_factory=list)
    """Waited for longer than the timeout and a second."""
    longest: float = 0.0
    """The most seconds that anyone waited beyond a timeout."""

    @property
    def problems(self):
        """All that must not be, in words."""
        found = [
            f"{len(numbers)} asks {what}, such as {numbers[0]}"
            for what, numbers in (
                ("ended in nothing that is known", self.unknown),
                ("were handled or answered twice", self.twice),
                ("were answered and never handled", self.unasked),
                (f"were waited for more than {GRACE} s beyond their timeout", self.overdue),
            )
            if numbers
        ]
        if self.asks != self.outcomes.total() + len(self.unknown):
            found.append(f"{self.asks} asks and {self.outcomes.total()} outcomes")
        return found


def account(journals, *, killed=(), stopped=()):
    """What became of all asks; ``stopped`` is when which node stood still, which is nobody's waiting."""
    found = Account()
    handled = Counter(number for entries in journals.values() for number in entries.handled)
    found.twice += [number for number, times in handled.items() if times > 1]
    for identity, entries in journals.items():
        still = [(begin, end) for node, begin, end in stopped if node == identity]
        for number, ask in entries.asks.items():
            found.asks += 1
            _settle(found, number, ask, handled, still, killed=identity in killed)
    return found


def _settle(found, number, ask, handled, still, *, killed):
    if not ask.outcomes:
        if killed:
            found.outcomes[CALLER_KILLED] += 1
        else:
            found.unknown.append(number)
        return
    if len(ask.outcomes) > 1:
        found.twice.append(number)
    at, what = ask.outcomes[0]
    if what != REPLIED and what not in TYPED:
        found.unknown.append(f"{number} ({what})")
        return
    found.outcomes[what] += 1
    if what == REPLIED and not handled[number]:
        found.unasked.append(number)
    stood = sum(max(0.0, min(at, end) - max(ask.asked, begin)) for begin, end in still)
    beyond = at - ask.asked - stood - ask.timeout
    found.longest = max(found.longest, beyond)
    if beyond > GRACE:
        found.overdue.append(number)
