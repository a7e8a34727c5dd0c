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
from framewire.spark.columns import own, quoted, reject_clashes, require
from framewire.spark.shapes import literal
from framewire.wire.layout import SIGNED

__all__ = ["signature_state", "verify", "with_keys"]

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
    state = signature_state(keys, {name: F.col(name) for name in _NEEDED})
    return with_keys(df, F.col("domain"), keys).select(*map(quoted, df.columns), state.alias("signature_state"))


def with_keys(df: DataFrame, domain: Column, keys: KeyRing) -> DataFrame:
    """The table with the keys of each row's domain, for ``signature_state``."""
    if not keys.keys:
        return df
    return df.join(F.broadcast(_key_table(df, keys.keys)), F.col(own("of_domain")) == domain, "left")


def _key_table(df: DataFrame, held: Mapping[str, tuple[DomainKey, ...]]) -> DataFrame:
    """A row for each domain with all its keys; keys that a domain does not have are null."""
    most = _most(held)
    names = [f"algorithm{n}: string, inner{n}: binary, outer{n}: binary" for n in range(most)]
    rows = []
    for domain, group in held.items():
        parts: list[object] = []
        for key in group:
            parts += [key.algorithm, *map(bytearray, key.pads)]
        rows.append((domain, (*parts, *[None] * (3 * (most - len(group))))))
    # All in one column, which is copied as it lies.
    schema = f"{own('of_domain')} string, {own('keys')} struct<{', '.join(names)}>"
    return df.sparkSession.createDataFrame(rows, schema)


def _most(held: Mapping[str, tuple[DomainKey, ...]]) -> int:
    return max((len(group) for group in held.values()), default=0)


def signature_state(ring: KeyRing, fields: Mapping[str, Column]) -> Column:
    """The verdict on a message of which these are the fields, in a table that has its keys."""
    held = ring.keys
    domain, identity, signature = (fields[name] for name in ("domain", "identity", "signature"))
    said = F.concat(*[fields[_READ.get(name, name)] for name in SIGNED])
    known = sorted({"", *ring.domains})
    expected = _domain_of(ring, identity)
    algorithms = sorted({key.algorithm for group in held.values() for key in group})
    matches = [_made(number, algorithms, said) == signature for number in range(_most(held))]
    return (
        F.when(domain.isNull() | identity.isNull(), None)
        .when(~domain.isin(*known), "unknown_domain")
        .when(domain != expected, "invalid")
        .when(~_is_signed(ring, domain, identity), "unsigned")
        .when(~domain.isin(*sorted(held)) if held else F.lit(True), "unknown_domain")
        .when(F.length(signature) == 0, "invalid")
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


def _made(number: int, algorithms: list[str], said: Column) -> Column:
    """The signature that one of a domain's keys makes of what was said; null where it has not so many."""
    key = F.col(own("keys"))
    inner, outer = key[f"inner{number}"], key[f"outer{number}"]
    made = F.lit(None).cast("binary")
    for algorithm in algorithms:
        mac = _hash(algorithm, F.concat(outer, _hash(algorithm, F.concat(inner, said))))
        made = F.when(key[f"algorithm{number}"] == algorithm, mac).otherwise(made)
    return made


def _hash(algorithm: str, data: Column) -> Column:
    if algorithm == "md5":
        return F.unhex(F.md5(data))
    if algorithm == "sha1":
        return F.unhex(F.sha1(data))
    return F.unhex(F.sha2(data, int(algorithm.removeprefix("sha"))))
