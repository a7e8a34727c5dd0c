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
_ELEMENTS = rf"(?s)(?:\A.{{4}}|(?!\A)\G)({_ELEMENT})"
"""One after the other from the beginning, each where the one before it ends."""


def told_by(body: Column) -> Column:
    """Type, text, actor, node and message of an exception; each null where the document does not tell it."""
    # Latin-1 has a character for each byte, so a dot is a byte.
    elements = F.regexp_extract_all(F.decode(body, "ISO-8859-1"), F.lit(_ELEMENTS), F.lit(1))
    # A value that is needed five times is worked out once only where it is the argument of a function.
    told = F.transform(
        F.array(elements), lambda found: F.struct(*[_field(found, name).alias(to) for to, name in _FIELDS.items()])
    )
    return F.get(told, F.lit(0))


def _field(elements: Column, name: str) -> Column:
    head = f"\x02{name}\0"
    found = F.get(F.filter(elements, lambda element: F.startswith(element, F.lit(head))), F.lit(0))
    begin = len(head) + 4  # the length of the text comes before it, and a zero after it
    raw = F.encode(F.substr(found, F.lit(begin + 1), F.length(found) - F.lit(begin + 1)), "ISO-8859-1").cast(
        "string"
    )
    return F.when(F.is_valid_utf8(raw), raw)
