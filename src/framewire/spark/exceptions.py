"""What exception messages tell, read from their BSON by expressions.

The document is walked element by element and not searched, because the text of an exception may hold anything,
names of fields included. What stands behind a nested document, or a text with a zero in it, is not read.
"""

from __future__ import annotations

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


def told_by(body: str) -> str:
    """Type, text, actor, node and message of an exception; each null where the document does not tell it."""
    # Latin-1 has a character for each byte, so a dot is a byte.
    elements = f"regexp_extract_all(decode({body}, 'ISO-8859-1'), r'{_ELEMENTS}', 1)"
    fields = ", ".join(f"'{to}', {_field('elements', name)}" for to, name in _FIELDS.items())
    # Spark generates no code for zip_with and what is in it. That is right for what is rare: all other rows would
    # have to wait until the JVM has compiled it. And it works out once what is needed five times.
    return f"get(zip_with(array({elements}), array(0), (elements, _) -> named_struct({fields})), 0)"


def _field(elements: str, name: str) -> str:
    head = rf"concat(X'02', X'{name.encode().hex()}00')"
    begin = 1 + len(name) + 1 + 4  # its type, its name with a zero; the length of the text comes before it
    found = f"get(filter({elements}, element -> startswith(element, CAST({head} AS STRING))), 0)"
    raw = f"CAST(encode(substr({found}, {begin + 1}, length({found}) - {begin + 1}), 'ISO-8859-1') AS STRING)"
    return f"CASE WHEN is_valid_utf8({raw}) THEN {raw} END"
