"""Bytes as people read them: what ``wire.message.readable`` makes of them, as expressions."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

from framewire.spark.shapes import literal

__all__ = ["flow_text", "is_flow", "message_text", "readable"]

_ZERO = b"00000000-0000-0000-0000-000000000000"
"""How a GUID of zeros is written, which .NET has for no GUID at all."""
_NOT_PRINTABLE = r"[\p{C}\p{Z}&&[^ ]]"
_PLAIN = r"\A[ -~]*\z"
"""Nearly all names are ASCII. That is seen quicker than what other characters are good for."""


def readable(raw: Column) -> Column:
    """Text where the bytes are printable, hex otherwise."""
    text = raw.cast("string")
    printable = F.is_valid_utf8(text) & ~text.rlike(_NOT_PRINTABLE)
    return F.when(text.rlike(_PLAIN) | printable, text).when(
        raw.isNotNull(), F.concat(F.lit("0x"), F.lower(F.hex(raw)))
    )


def message_text(identity: Column, version: Column, version_raw: Column, partition: Column) -> Column:
    """A message id as ``str(MessageId)`` writes it. V1's 2.0 is the 2 of other formats here: one name for both."""
    number = F.coalesce(version.cast("string"), readable(version_raw))
    inside = F.when(F.length(partition) > 0, F.concat(F.lit(" ["), readable(partition), F.lit("]")))
    return F.concat(readable(identity), F.lit(" v"), number, F.coalesce(inside, F.lit("")))


def is_flow(correlation_id: Column) -> Column:
    """Whether a correlation id is one: neither empty nor all zero."""
    return (F.trim(correlation_id.cast("string"), F.lit("\0")) != "") & (correlation_id != literal(_ZERO))


def flow_text(correlation_id: Column) -> Column:
    """A correlation id as text; null where it is none."""
    return F.when(is_flow(correlation_id), readable(correlation_id))
