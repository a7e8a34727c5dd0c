"""Whether messages come from their domain: the verdict of ``KeyRing.verify``, as a column.

Keys never become part of an expression, because expressions show in plans, in the UI and in event logs. They are a
small table that is joined to the messages: a row for each domain, a pair of padded keys for each key.

An HMAC is two hashes, each over a key that was padded to a block and changed with a constant. That much is done
here, once for each key; the hashes are Spark's own.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F  # noqa: N812

from framewire.errors import UsageError
from framewire.security import DomainKey, KeyRing
from framewire.spark.columns import own, reject_clashes, require
from framewire.spark.shapes import literal
from framewire.wire.layout import SIGNED

__all__ = ["verify"]

_READ = {"version": "version_raw"}  # what a signature covers is the frame
_NEEDED = (*(_READ.get(name, name) for name in SIGNED), "domain", "signature")


def verify(df: DataFrame, keys: KeyRing) -> DataFrame:
    """A decoded table with ``signature_state``: ``valid``, ``invalid``, ``unsigned`` or ``unknown_domain``.

    ``valid`` and ``unsigned`` are what the ring accepts. Null where there is no message.
    """
    if not isinstance(keys, KeyRing):
        raise UsageError(f"keys: {type(keys).__name__} is not a KeyRing")
    require(df, _NEEDED, "decode()")
    reject_clashes(df, ["signature_state"])
    held = keys.keys
    most = max((len(group) for group in held.values()), default=0)
    if most:
        df = df.join(F.broadcast(_key_table(df, held, most)), F.col(own("domain")) == F.col("domain"), "left")
    state = _state(keys, held, most)
    kept = [name for name in df.columns if not name.startswith("__framewire_")]
    return df.withColumn("signature_state", state).select(*kept, "signature_state")


def _key_table(df: DataFrame, held: Mapping[str, tuple[DomainKey, ...]], most: int) -> DataFrame:
    """A row for each domain with all its keys; keys that a domain does not have are null."""
    names = ["domain string"]
    for number in range(most):
        names += [f"algorithm{number} string", f"inner{number} binary", f"outer{number} binary"]
    rows = []
    for domain, group in held.items():
        row: list[object] = [domain]
        for key in group:
            inner, outer = key.pads
            row += [key.algorithm, bytearray(inner), bytearray(outer)]
        rows.append((*row, *[None] * (3 * (most - len(group)))))
    schema = ", ".join(f"__framewire_{name}" for name in names)
    return df.sparkSession.createDataFrame(rows, schema)


def _state(ring: KeyRing, held: Mapping[str, tuple[DomainKey, ...]], most: int) -> Column:
    domain, identity = F.col("domain"), F.col("identity")
    known = sorted({"", *ring.domains})
    expected = _domain_of(ring, identity)
    algorithms = sorted({key.algorithm for group in held.values() for key in group})
    matches = [_matches(number, algorithms) for number in range(most)]
    return (
        F.when(domain.isNull() | identity.isNull(), None)
        .when(~domain.isin(*known), "unknown_domain")
        .when(domain != expected, "invalid")
        .when(~_is_signed(ring, domain, identity), "unsigned")
        .when(~domain.isin(*sorted(held)) if held else F.lit(True), "unknown_domain")
        .when(F.length("signature") == 0, "invalid")
        .when(F.coalesce(reduce(or_, matches, F.lit(False)), F.lit(False)), "valid")
        .otherwise("invalid")
    )


def _domain_of(ring: KeyRing, identity: Column) -> Column:
    """The domain that an identity belongs to; the longest beginning wins, and a whole name over all of them."""
    claims = [(name, domain) for domain, names in ring.identities.items() for name in names]
    expected = F.lit("")
    for prefix, domain in sorted(
        ((name[:-1], domain) for name, domain in claims if name[-1:] == b"*"), key=_length
    ):
        expected = F.when(F.startswith(identity, literal(prefix)), domain).otherwise(expected)
    by_domain: dict[str, list[bytearray]] = {}
    for name, domain in claims:
        if name[-1:] != b"*":
            by_domain.setdefault(domain, []).append(bytearray(name))
    for domain, names in by_domain.items():
        expected = F.when(identity.isin(*names), domain).otherwise(expected)
    return expected


def _length(claim: tuple[bytes, str]) -> int:
    return len(claim[0])


def _is_signed(ring: KeyRing, domain: Column, identity: Column) -> Column:
    signed = domain != ""
    for name, exempt in ring.unsigned.items():
        free = identity.isin(*map(bytearray, sorted(exempt))) if exempt else F.lit(True)
        signed &= ~((domain == name) & free)
    return signed


def _matches(number: int, algorithms: list[str]) -> Column:
    """Whether the signature is what one of a domain's keys makes of the message."""
    said = F.concat(*[F.col(_READ.get(name, name)) for name in SIGNED])
    inner, outer = F.col(own(f"inner{number}")), F.col(own(f"outer{number}"))
    made: Column | None = None
    for algorithm in algorithms:
        of_algorithm = F.col(own(f"algorithm{number}")) == algorithm
        mac = _hash(algorithm, F.concat(outer, _hash(algorithm, F.concat(inner, said))))
        made = F.when(of_algorithm, mac) if made is None else made.when(of_algorithm, mac)
    if made is None:
        return F.lit(False)
    return made == F.col("signature")


def _hash(algorithm: str, data: Column) -> Column:
    if algorithm == "md5":
        return F.unhex(F.md5(data))
    if algorithm == "sha1":
        return F.unhex(F.sha1(data))
    return F.unhex(F.sha2(data, int(algorithm.removeprefix("sha"))))
