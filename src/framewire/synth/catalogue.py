"""The message types of the made-up cluster: a small shop with orders, payments, trades and telemetry.

Plain data. What a flow of each shape is made of is read off here, so the shapes themselves know no names.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = [
    "ANSWERS",
    "ASKS",
    "CHAINS",
    "DOMAINS",
    "EXCEPTION",
    "EXPORT",
    "FAILURES",
    "GATHERS",
    "HOT",
    "KINDS",
    "PARTITIONS",
    "RECEIPT",
    "SENDS",
    "TELLS",
    "TICK",
    "Domain",
    "Failure",
    "Kind",
    "failure",
]


@dataclass(frozen=True, slots=True)
class Kind:
    """A message type; it exists in every partition unless it is a service message."""

    identity: str
    version: int
    domain: str = ""

    @property
    def version_text(self) -> bytes:
        """The version as V1 writes it; both forms that can be upgraded are there."""
        return (f"{self.version}.0" if self.version < 3 else f"{self.version}").encode()


@dataclass(frozen=True, slots=True)
class Domain:
    """A security domain; without an algorithm its messages are not signed."""

    name: str
    algorithm: str | None


DOMAINS = (
    Domain("orders", "sha256"),
    Domain("payments", "sha512"),
    Domain("ledger", "sha1"),
    Domain("telemetry", None),
)

_KINDS = (
    Kind("KINO.EXCEPTION", 1),
    Kind("KINO.RCPTCONFIRM", 1),
    Kind("metrics.tick", 1, "telemetry"),
    Kind("export.start", 1),
    Kind("export.row", 1),
    Kind("export.done", 1),
    Kind("orders.place", 2, "orders"),
    Kind("orders.placed", 2, "orders"),
    Kind("pay.authorise", 3, "payments"),
    Kind("pay.authorised", 3, "payments"),
    Kind("stock.check", 1),
    Kind("stock.level", 1),
    Kind("profile.read", 4),
    Kind("profile.data", 4),
    *(Kind(f"trade.step{number}", 1, "ledger") for number in range(1, 9)),
    Kind("trade.done", 1, "ledger"),
    *(Kind(f"document.step{number}", 2) for number in range(1, 9)),
    Kind("document.ready", 2),
    Kind("mail.queue", 1, "orders"),
    Kind("image.resize", 1),
    Kind("log.write", 1, "telemetry"),
    Kind("search.index", 2),
    Kind("ledger.note", 1, "ledger"),
    Kind("quote.request", 1),
    Kind("quote.offer", 1),
    Kind("audit.poll", 1, "payments"),
    Kind("audit.state", 1, "payments"),
)
_NUMBERS = {kind.identity: number for number, kind in enumerate(_KINDS)}

KINDS = _KINDS
"""Every message type. A flow names them by their number here."""

EXCEPTION = _NUMBERS["KINO.EXCEPTION"]
RECEIPT = _NUMBERS["KINO.RCPTCONFIRM"]
TICK = _NUMBERS["metrics.tick"]
EXPORT = tuple(_NUMBERS[f"export.{part}"] for part in ("start", "row", "done"))
"""The question, what is streamed, and the answer."""

ASKS = tuple(_NUMBERS[name] for name in ("orders.place", "pay.authorise", "stock.check", "profile.read"))
SENDS = tuple(_NUMBERS[name] for name in ("mail.queue", "image.resize"))
TELLS = tuple(_NUMBERS[name] for name in ("log.write", "search.index", "ledger.note"))
CHAINS = tuple(
    tuple(_NUMBERS[f"{family}.step{number}"] for number in range(1, 9)) for family in ("trade", "document")
)
GATHERS = tuple(_NUMBERS[name] for name in ("quote.request", "audit.poll"))
ANSWERS = {
    **{kind: kind + 1 for kind in (*ASKS, *GATHERS)},
    **dict.fromkeys(SENDS, RECEIPT),
    **{chain[0]: chain[-1] + 1 for chain in CHAINS},
    EXPORT[0]: EXPORT[2],
}
"""What answers a flow that begins with a message type; the telling of one-way messages is not answered."""

PARTITIONS = (b"", b"eu", b"us", b"hot")
HOT = len(PARTITIONS) - 1
"""The partition that is used only where a hot one is asked for."""


@dataclass(frozen=True, slots=True)
class Failure:
    """What an exception message tells. Those of handlers name the actor, as a node does."""

    exception_type: str
    message: str
    by_handler: bool = False


FAILURES = (
    Failure("builtins.ValueError", "the amount is negative", by_handler=True),
    Failure("builtins.KeyError", "'customer'", by_handler=True),
    Failure("shop.errors.OutOfStock", "nothing is left of it", by_handler=True),
    Failure("framewire.Expired", "reached its handler too late"),
    Failure("framewire.NoRoute", "nobody handles it"),
    Failure("framewire.Unreachable", "the node that handles it is gone"),
    Failure("framewire.Overloaded", "the mailbox is full"),
    Failure("framewire.BadBody", "the body is not what its type says"),
    Failure("framewire.BadSignature", "the signature does not match"),
)


def failure(exception_type: str) -> int:
    """The number of a failure."""
    return next(n for n, told in enumerate(FAILURES) if told.exception_type == exception_type)
