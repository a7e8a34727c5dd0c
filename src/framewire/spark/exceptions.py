"""What exception messages tell, read from their BSON by expressions.

The document is walked element by element and not searched, because the text of an exception may hold anything,
names of fields included. What stands behind a nested document, or a text with a zero in it, is not read.
"""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F  # noqa: N812

__all__ = ["EXCEPTION", "told_by"]

EXCEPTION = b"KINO.EXCEPTION"
_FIELDS = {"type": "ExceptionType", "text": "Message", "actor": "Actor", "node": "Node", "about": "About"}
_NAME = r"[^\x00]*+\x00"
_TEXT = r".{4}[^\x00]*+\x00"
_ELEMENT = (
    rf"(?:\x02{_NAME}{_TEXT}|[\x01\x09\x11\x12]{_NAME}.{{8}}|\x10{_NAME}.{{4}}|\x08{_NAME}.|[\x06\x0a]{_NAME})"
)
"""An element that can be stepped over: its type, its name, and as many bytes as the type has."""


def told_by(body: Column) -> Column:
    """Type, text, actor, node and message of an exception; each null where the document does not tell it."""
    # Latin-1 has a character for each byte, so a dot is a byte.
    document = F.decode(body, "ISO-8859-1")
    return F.struct(*[_field(document, name).alias(field) for field, name in _FIELDS.items()])


def _field(document: Column, name: str) -> Column:
    pattern = rf"(?s)\A.{{4}}{_ELEMENT}*?\x02{name}\x00.{{4}}([^\x00]*+)\x00"
    raw = F.encode(F.regexp_extract(document, pattern, 1), "ISO-8859-1").cast("string")
    return F.when(document.rlike(pattern) & F.is_valid_utf8(raw), raw)
